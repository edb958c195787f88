package dev.lily.engine.sampling;

/** A sampling option has a value outside its range. */
public final class InvalidSamplingException extends IllegalArgumentException {
  private static final long serialVersionUID = 1L;

  private final String option;

  /**
   * @param option the option's name as in {@link SamplingOptions}, for example {@code topP}
   * @param message the value given and the allowed range
   */
  public InvalidSamplingException(String option, String message) {
    super(message);
    this.option = option;
  }

  /** Name of the option that is wrong, as spelled in {@link SamplingOptions}. */
  public String option() {
    return option;
  }
}
