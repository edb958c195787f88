package dev.lily.spring.openai.dto;

import com.fasterxml.jackson.annotation.JsonInclude;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Log-probabilities of a choice's tokens.
 *
 * @param content one per generated token, reasoning and end token included
 * @param refusal always {@code null}
 */
public record Logprobs(List<Token> content, @Nullable List<Token> refusal) {

  /**
   * A token.
   *
   * @param token its text; a part of a character shows as U+FFFD
   * @param bytes its UTF-8 bytes, each 0 to 255
   * @param topLogprobs likeliest first; absent in an alternative
   */
  public record Token(
      String token,
      float logprob,
      List<Integer> bytes,
      @JsonInclude(JsonInclude.Include.NON_NULL) @Nullable List<Token> topLogprobs) {}
}
