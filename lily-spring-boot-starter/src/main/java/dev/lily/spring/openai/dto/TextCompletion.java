package dev.lily.spring.openai.dto;

import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.annotation.JsonInclude.Include;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The answer of the older operation, whole or a piece of it.
 *
 * @param object always {@code text_completion}
 * @param created seconds since the epoch; the same in all pieces of an answer
 * @param choices none in the piece with the usage
 */
public record TextCompletion(
    String id,
    String object,
    long created,
    String model,
    List<Choice> choices,
    @JsonInclude(Include.NON_NULL) @Nullable Usage usage) {

  public static final String OBJECT = "text_completion";

  /**
   * A continuation, or what it gained.
   *
   * @param finishReason {@code null} but in a choice's last piece
   */
  public record Choice(
      int index, String text, @Nullable TextLogprobs logprobs, @Nullable String finishReason) {}

  /**
   * Log-probabilities, one element of each list per generated token, the end token included.
   *
   * @param tokens texts; a token that is no whole character is written {@code bytes:\xNN…}
   * @param topLogprobs log-probabilities of the likeliest tokens by text; {@code null} if not asked
   *     for
   * @param textOffset where each token begins in the choice's text, in Unicode characters
   */
  public record TextLogprobs(
      List<String> tokens,
      List<Float> tokenLogprobs,
      @Nullable List<Map<String, Float>> topLogprobs,
      List<Integer> textOffset) {}
}
