package dev.lily.spring.openai.dto;

/** Tokens of a request. Details are part of the totals. */
public record Usage(
    int promptTokens,
    int completionTokens,
    int totalTokens,
    PromptTokensDetails promptTokensDetails,
    CompletionTokensDetails completionTokensDetails) {

  public record PromptTokensDetails(int cachedTokens) {}

  public record CompletionTokensDetails(int reasoningTokens) {}

  public static Usage of(int prompt, int cached, int completion, int reasoning) {
    return new Usage(
        prompt,
        completion,
        prompt + completion,
        new PromptTokensDetails(cached),
        new CompletionTokensDetails(reasoning));
  }
}
