package dev.lily.spring.openai.dto;

/** Tokens of a response, in the words of that operation. Details are part of the totals. */
public record ResponseUsage(
    int inputTokens,
    InputTokensDetails inputTokensDetails,
    int outputTokens,
    OutputTokensDetails outputTokensDetails,
    int totalTokens) {

  public record InputTokensDetails(int cachedTokens) {}

  public record OutputTokensDetails(int reasoningTokens) {}

  public static ResponseUsage of(Usage usage) {
    return new ResponseUsage(
        usage.promptTokens(),
        new InputTokensDetails(usage.promptTokensDetails().cachedTokens()),
        usage.completionTokens(),
        new OutputTokensDetails(usage.completionTokensDetails().reasoningTokens()),
        usage.totalTokens());
  }
}
