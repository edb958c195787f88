package dev.lily.spring.openai;

import java.time.Duration;
import java.util.concurrent.TimeoutException;
import org.springframework.core.io.buffer.DataBuffer;
import org.springframework.core.io.buffer.DataBufferLimitException;
import org.springframework.core.io.buffer.DataBufferUtils;
import org.springframework.http.HttpStatus;
import org.springframework.http.MediaType;
import org.springframework.http.server.reactive.ServerHttpRequest;
import org.springframework.web.reactive.function.server.ServerRequest;
import reactor.core.publisher.Mono;

/** Reads bodies up to a limit of its own, which the limit of the application's codecs is not. */
final class BodyReader {
  private static final MediaType ANY_JSON = new MediaType("application", "*+json");

  private final int maxBytes;
  private final Duration timeout;

  /**
   * @param timeout how long a body may take to arrive
   */
  BodyReader(int maxBytes, Duration timeout) {
    this.maxBytes = maxBytes;
    this.timeout = timeout;
  }

  /**
   * The whole body. Ends with an {@link ApiException} as soon as it is known to be too large, if it
   * takes too long, or if it is not declared as JSON: a browser sends JSON to a foreign server only
   * if that allows it, so no web page can make this one compute.
   */
  Mono<byte[]> read(ServerRequest request) {
    MediaType type = request.headers().contentType().orElse(null);
    if (type == null
        || !(type.equalsTypeAndSubtype(MediaType.APPLICATION_JSON) || ANY_JSON.includes(type))) {
      return Mono.error(
          ApiError.of(
                  HttpStatus.UNSUPPORTED_MEDIA_TYPE,
                  "The header Content-Type must be application/json.",
                  null,
                  null)
              .exception());
    }
    ServerHttpRequest http = request.exchange().getRequest();
    if (http.getHeaders().getContentLength() > maxBytes) {
      return Mono.error(ApiError.tooLarge(maxBytes).exception());
    }
    return DataBufferUtils.join(http.getBody(), maxBytes)
        .map(BodyReader::take)
        .timeout(timeout)
        .onErrorMap(TimeoutException.class, _ -> ApiError.tooSlow(timeout).exception())
        .onErrorMap(DataBufferLimitException.class, _ -> ApiError.tooLarge(maxBytes).exception())
        .defaultIfEmpty(new byte[0]);
  }

  private static byte[] take(DataBuffer buffer) {
    byte[] bytes = new byte[buffer.readableByteCount()];
    buffer.read(bytes);
    DataBufferUtils.release(buffer);
    return bytes;
  }
}
