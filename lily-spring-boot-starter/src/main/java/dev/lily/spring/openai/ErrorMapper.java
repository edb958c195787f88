package dev.lily.spring.openai;

import dev.lily.engine.chat.InvalidConversationException;
import dev.lily.engine.generation.ContextOverflowException;
import dev.lily.engine.generation.DeadlineExceededException;
import dev.lily.engine.generation.EngineBusyException;
import dev.lily.engine.generation.EngineClosedException;
import dev.lily.engine.generation.InvalidRequestException;
import dev.lily.engine.sampling.InvalidSamplingException;
import dev.lily.spring.OverflowFailedException;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;
import org.springframework.http.HttpStatus;
import org.springframework.web.server.ResponseStatusException;

/** Turns what went wrong into what the client is told. */
final class ErrorMapper {
  private static final Duration RETRY_AFTER_CLOSING = Duration.ofSeconds(10);
  private static final Duration RETRY_AFTER_DEADLINE = Duration.ofSeconds(10);
  private static final Duration RETRY_AFTER_REJECTION = Duration.ofSeconds(5);

  /** The engine's names of options to the API's. */
  private static final Map<String, String> API_NAMES =
      Map.ofEntries(
          Map.entry("temperature", "temperature"),
          Map.entry("topP", "top_p"),
          Map.entry("topK", "top_k"),
          Map.entry("minP", "min_p"),
          Map.entry("presencePenalty", "presence_penalty"),
          Map.entry("frequencyPenalty", "frequency_penalty"),
          Map.entry("repetitionPenalty", "repetition_penalty"),
          Map.entry("logitBias", "logit_bias"),
          Map.entry("seed", "seed"),
          Map.entry("maxTokens", "max_tokens"),
          Map.entry("minTokens", "min_tokens"),
          Map.entry("stopStrings", "stop"),
          Map.entry("toolChoice", "tool_choice"),
          Map.entry("topLogprobs", "top_logprobs"));

  private ErrorMapper() {}

  /** What the client is told. Anything unknown is an internal error without details. */
  static ApiError map(Throwable failure) {
    return switch (failure) {
      case ApiException e -> e.error();
      case InvalidRequestException e when e.parameter().equals("output") ->
          ApiError.invalidValue("response_format", String.valueOf(e.getMessage()));
      case ContextOverflowException e -> contextOverflow(e, "messages");
      case InvalidRequestException e -> invalid(e.parameter(), e.getMessage());
      case InvalidConversationException e -> invalid(e.path(), e.getMessage());
      case InvalidSamplingException e -> invalid(e.option(), e.getMessage());
      case EngineBusyException e -> ApiError.busy(e.retryAfter());
      case RejectedExecutionException _ -> ApiError.busy(RETRY_AFTER_REJECTION);
      case EngineClosedException _ ->
          ApiError.unavailable(
              "The server is shutting down.", "service_unavailable", RETRY_AFTER_CLOSING);
      case DeadlineExceededException _ ->
          ApiError.unavailable(
              "The answer was not finished in the time that this server allows.",
              "timeout",
              RETRY_AFTER_DEADLINE);
      case OverflowFailedException _ ->
          ApiError.badGateway("The model that answers for this server did not. Try again.");
      case ResponseStatusException e when e.getStatusCode().is4xxClientError() ->
          ApiError.invalidBody("The request cannot be read.");
      default -> ApiError.internal();
    };
  }

  /**
   * The prompt is too long.
   *
   * @param field what the operation calls its prompt
   */
  static ApiError contextOverflow(ContextOverflowException e, String field) {
    return ApiError.invalid(
        field,
        "This model's maximum context length is %d tokens. However, your %s resulted in %d tokens, and at least one must be left for the answer. Please reduce the length of the %s."
            .formatted(e.contextLength(), field, e.promptTokens(), field),
        "context_length_exceeded");
  }

  /**
   * A wrong option has the engine's name in its message as well; a path into messages or tools is
   * the API's already.
   */
  private static ApiError invalid(String parameter, @Nullable String text) {
    String message = String.valueOf(text);
    String name = API_NAMES.get(parameter);
    if (name == null) {
      return ApiError.invalidValue(parameter, message);
    }
    for (Map.Entry<String, String> names : API_NAMES.entrySet()) {
      message = message.replace(names.getKey(), names.getValue());
    }
    return ApiError.invalidValue(name, message);
  }

  /** Whether the failure is none of the client's doing, so that the log needs all of it. */
  static boolean isInternal(ApiError error) {
    return error.status() == HttpStatus.INTERNAL_SERVER_ERROR
        || error.status() == HttpStatus.BAD_GATEWAY;
  }
}
