package dev.lily.spring.openai;

import dev.lily.engine.generation.FinishReason;
import dev.lily.engine.generation.TokenLogprob;
import dev.lily.spring.openai.dto.Logprobs;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** What whole answers and chunks have in common: finish reasons and log-probabilities. */
final class AnswerMapper {
  /** JSON has no infinity; clients know this number for "impossible". */
  private static final float IMPOSSIBLE = -9999f;

  private AnswerMapper() {}

  static String finishReason(FinishReason reason) {
    return switch (reason) {
      case STOP -> "stop";
      case LENGTH -> "length";
      case TOOL_CALLS -> "tool_calls";
      // Nobody but this endpoint cancels its requests, and then nobody is left to read the answer.
      case CANCELLED -> throw new IllegalStateException("The request was cancelled by the engine");
    };
  }

  /** The log-probabilities, or {@code null} if they were not asked for. */
  static @Nullable Logprobs logprobs(boolean asked, List<TokenLogprob> tokens) {
    return asked ? new Logprobs(tokens.stream().map(AnswerMapper::token).toList(), null) : null;
  }

  /** A log-probability as JSON can have it. */
  static float finite(float logprob) {
    return Math.max(logprob, IMPOSSIBLE);
  }

  private static Logprobs.Token token(TokenLogprob token) {
    return token(token, token.top().stream().map(top -> token(top, null)).toList());
  }

  private static Logprobs.Token token(
      TokenLogprob token, @Nullable List<Logprobs.Token> alternatives) {
    return new Logprobs.Token(
        new String(token.bytes(), StandardCharsets.UTF_8),
        finite(token.logprob()),
        unsigned(token.bytes()),
        alternatives);
  }

  private static List<Integer> unsigned(byte[] bytes) {
    List<Integer> values = new ArrayList<>(bytes.length);
    for (byte value : bytes) {
      values.add(Byte.toUnsignedInt(value));
    }
    return values;
  }
}
