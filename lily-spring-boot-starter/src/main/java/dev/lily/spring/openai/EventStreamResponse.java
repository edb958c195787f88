package dev.lily.spring.openai;

import org.springframework.core.io.buffer.DataBufferFactory;
import org.springframework.http.CacheControl;
import org.springframework.http.MediaType;
import org.springframework.web.reactive.function.server.ServerResponse;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** A response of server-sent events, flushed one by one. */
final class EventStreamResponse {
  private EventStreamResponse() {}

  /**
   * The response.
   *
   * @param frames whole events; requested as the connection takes them
   */
  static Mono<ServerResponse> of(Flux<byte[]> frames) {
    return ServerResponse.ok()
        .contentType(MediaType.TEXT_EVENT_STREAM)
        .cacheControl(CacheControl.noCache())
        // Asks the reverse proxies that know it not to collect the stream.
        .header("X-Accel-Buffering", "no")
        .body(
            (message, context) -> {
              DataBufferFactory buffers = message.bufferFactory();
              return message.writeAndFlushWith(frames.map(frame -> Mono.just(buffers.wrap(frame))));
            });
  }
}
