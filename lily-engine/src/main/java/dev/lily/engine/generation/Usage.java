package dev.lily.engine.generation;

/**
 * Tokens of one request.
 *
 * @param promptTokens all prompt tokens, cached ones included
 * @param completionTokens all generated tokens, reasoning and the end token included
 * @param reasoningTokens generated while inside the reasoning
 * @param cachedTokens prompt tokens whose state was reused
 */
public record Usage(int promptTokens, int completionTokens, int reasoningTokens, int cachedTokens) {
  public int totalTokens() {
    return promptTokens + completionTokens;
  }
}
