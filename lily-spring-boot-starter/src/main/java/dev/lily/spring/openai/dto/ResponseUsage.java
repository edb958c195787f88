package dev.lily.spring.openai.dto;

/** Tokens of a response, in the words of that operation. Details are part of the totals. */
public record ResponseUsage(
    int inputTokens,
    InputTokensDetails inputTokensDetails,
    int outputTokens,
    OutputTokensDetails outputTokensDetails,
    int totalTokens) {

  /**
   * What became of the prompt.
   *
   * @param cacheWriteTokens always 0: nothing is charged for keeping a prompt
   */
  public record InputTokensDetails(int cachedTokens, int cacheWriteTokens) {}

  public record OutputTokensDetails(int reasoningTokens) {}

  public static ResponseUsage of(Usage usage) {
    return new ResponseUsage(
        usage.promptTokens(),
        new InputTokensDetails(usage.promptTokensDetails().cachedTokens(), 0),
        usage.completionTokens(),
        new OutputTokensDetails(usage.completionTokensDetails().reasoningTokens()),
        usage.totalTokens());
  }
}
