package dev.lily.spring.openai;

/** An option of the endpoint has a value that makes no sense. */
public final class InvalidOpenAiOptionException extends IllegalArgumentException {
  private static final long serialVersionUID = 1L;

  private final String option;

  /**
   * @param option the option's name as in {@link OpenAiOptions}
   * @param reason the rule that is broken; without the value, which may be secret
   */
  public InvalidOpenAiOptionException(String option, String reason) {
    super(reason);
    this.option = option;
  }

  /** Name of the option that is wrong, as spelled in {@link OpenAiOptions}. */
  public String option() {
    return option;
  }
}
