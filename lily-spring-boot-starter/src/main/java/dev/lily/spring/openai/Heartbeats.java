package dev.lily.spring.openai;

import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Sinks;

/** Comments in the silence of a stream, so that proxies and clients do not take it for dead. */
final class Heartbeats {
  /** Looked at this often within the longest silence. */
  private static final int TICKS = 2;

  private Heartbeats() {}

  /**
   * The frames, and a comment wherever nothing else came for so long. A client that takes nothing
   * gets none.
   *
   * @param longest longest silence
   * @param silent whether it has lasted for that long already
   */
  static Flux<byte[]> in(Flux<byte[]> frames, Duration longest, boolean silent) {
    return Flux.defer(
        () -> {
          AtomicInteger quietTicks = new AtomicInteger(silent ? TICKS - 1 : 0);
          Sinks.Empty<Void> ended = Sinks.empty();
          Duration tick = longest.dividedBy(TICKS);
          Flux<byte[]> comments =
              Flux.interval(silent ? Duration.ZERO : tick, tick)
                  .filter(_ -> quietTicks.incrementAndGet() >= TICKS)
                  .doOnNext(_ -> quietTicks.set(0))
                  .onBackpressureDrop()
                  .map(_ -> EventFrames.heartbeat())
                  .takeUntilOther(ended.asMono());
          Flux<byte[]> said =
              frames.doOnNext(_ -> quietTicks.set(0)).doOnTerminate(ended::tryEmitEmpty);
          return Flux.merge(1, said, comments);
        });
  }
}
