package dev.lily.spring.openai;

import dev.lily.spring.openai.dto.ErrorBody;
import java.time.Duration;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.http.HttpStatus;

/**
 * An error as the client sees it.
 *
 * @param message what is wrong and the way out; never internal text
 * @param param path of the field that is wrong
 * @param headers further headers of the response
 */
record ApiError(
    HttpStatus status,
    String message,
    String type,
    @Nullable String param,
    @Nullable String code,
    Map<String, String> headers) {

  private static final String INVALID_REQUEST = "invalid_request_error";
  private static final String SERVER_ERROR = "server_error";

  static ApiError of(
      HttpStatus status, String message, @Nullable String param, @Nullable String code) {
    return new ApiError(status, message, INVALID_REQUEST, param, code, Map.of());
  }

  static ApiError invalid(String param, String message, String code) {
    return of(HttpStatus.BAD_REQUEST, message, param, code);
  }

  static ApiError invalidValue(String param, String message) {
    return invalid(param, message, "invalid_value");
  }

  /** A field that the API knows and this endpoint cannot honour. */
  static ApiError unsupported(String param, String message) {
    return invalid(param, message, "unsupported_value");
  }

  static ApiError invalidBody(String message) {
    return of(HttpStatus.BAD_REQUEST, message, null, null);
  }

  static ApiError modelNotFound(String model, String loaded) {
    return of(
        HttpStatus.NOT_FOUND,
        "The model %s does not exist here; the loaded model is \"%s\"."
            .formatted(Quote.of(model), loaded),
        "model",
        "model_not_found");
  }

  static ApiError tooLarge(long limit) {
    return of(
        HttpStatus.CONTENT_TOO_LARGE,
        "The body is larger than %d bytes, which is the most this server takes.".formatted(limit),
        null,
        "request_too_large");
  }

  static ApiError tooSlow(Duration limit) {
    return of(
            HttpStatus.REQUEST_TIMEOUT,
            "The body did not arrive within %d s.".formatted(limit.toSeconds()),
            null,
            "request_timeout")
        .with("Connection", "close");
  }

  static ApiError busy(Duration retryAfter) {
    long seconds = Math.max(1, retryAfter.plusMillis(999).toSeconds());
    return new ApiError(
        HttpStatus.TOO_MANY_REQUESTS,
        "The server is busy. Try again in about %d s.".formatted(seconds),
        "rate_limit_error",
        null,
        "rate_limit_exceeded",
        Map.of("Retry-After", Long.toString(seconds)));
  }

  static ApiError unavailable(String message, String code, Duration retryAfter) {
    return new ApiError(
        HttpStatus.SERVICE_UNAVAILABLE,
        message,
        SERVER_ERROR,
        null,
        code,
        Map.of("Retry-After", Long.toString(retryAfter.toSeconds())));
  }

  static ApiError badGateway(String message) {
    return new ApiError(
        HttpStatus.BAD_GATEWAY, message, SERVER_ERROR, null, "overflow_failed", Map.of());
  }

  static ApiError internal() {
    return new ApiError(
        HttpStatus.INTERNAL_SERVER_ERROR,
        "The server had an error while it worked on the request.",
        SERVER_ERROR,
        null,
        null,
        Map.of());
  }

  ApiError with(String header, String value) {
    return new ApiError(status, message, type, param, code, Map.of(header, value));
  }

  ErrorBody body() {
    return new ErrorBody(new ErrorBody.Detail(message, type, param, code));
  }

  ApiException exception() {
    return new ApiException(this);
  }
}
