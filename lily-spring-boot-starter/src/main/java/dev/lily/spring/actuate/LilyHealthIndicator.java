package dev.lily.spring.actuate;

import dev.lily.engine.EngineStats;
import dev.lily.engine.LilyEngine;
import dev.lily.engine.MemoryPlan;
import dev.lily.engine.ModelInfo;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.springframework.boot.health.contributor.AbstractHealthIndicator;
import org.springframework.boot.health.contributor.Health;

/**
 * Health of an engine, read from its counters; never runs the model. By these rules, the first that
 * holds:
 *
 * <ol>
 *   <li>OUT_OF_SERVICE while the application drains the engine;
 *   <li>DOWN if the engine serves no requests any more;
 *   <li>DOWN if sessions have been running without a step for longer than the limit, as far as the
 *       polls of this indicator saw;
 *   <li>UP otherwise, also with a full queue.
 * </ol>
 */
public final class LilyHealthIndicator extends AbstractHealthIndicator {

  /** The last step number seen to change, or seen while idle. */
  private record Progress(long steps, long nanos) {}

  private final ModelInfo model;
  private final MemoryDetails memory;
  private final Supplier<EngineStats> stats;
  private final BooleanSupplier draining;
  private final Duration stuckAfter;
  private final LongSupplier nanoTime;
  private final AtomicReference<Progress> progress;

  /**
   * @param draining whether the application is ending the engine's work
   * @param stuckAfter how long running sessions may go without a step; longer than the engine's
   *     stall timeout, because a session waits that long for a slow consumer
   */
  public LilyHealthIndicator(LilyEngine engine, BooleanSupplier draining, Duration stuckAfter) {
    this(
        engine.model(), engine.memoryPlan(), engine::stats, draining, stuckAfter, System::nanoTime);
  }

  LilyHealthIndicator(
      ModelInfo model,
      MemoryPlan memory,
      Supplier<EngineStats> stats,
      BooleanSupplier draining,
      Duration stuckAfter,
      LongSupplier nanoTime) {
    super("Reading the engine's state failed");
    this.model = model;
    this.memory = MemoryDetails.of(memory);
    this.stats = stats;
    this.draining = draining;
    this.stuckAfter = stuckAfter;
    this.nanoTime = nanoTime;
    this.progress = new AtomicReference<>(new Progress(-1, nanoTime.getAsLong()));
  }

  @Override
  protected void doHealthCheck(Health.Builder health) {
    health
        .withDetail("model", model.name())
        .withDetail("backend", model.backend())
        .withDetail("backendReason", model.backendReason())
        .withDetail("device", model.device())
        .withDetail("deviceDetail", model.deviceDetail())
        .withDetail("kvCache", model.kvCache())
        .withDetail("memory", memory);
    if (!model.notes().isEmpty()) {
      health.withDetail("notes", model.notes());
    }
    if (draining.getAsBoolean()) {
      health.outOfService().withDetail("reason", "The application is stopping");
      return;
    }
    EngineStats now = stats.get();
    health
        .withDetail("queued", now.queued())
        .withDetail("running", now.running())
        .withDetail("kvPagesUsed", now.kvPagesUsed())
        .withDetail("kvPages", now.kvPages())
        .withDetail("memoryInUse", now.memory())
        .withDetail("cache", now.cache());
    if (!now.lastFailure().isEmpty()) {
      health.withDetail("lastFailure", now.lastFailure());
    }
    if (!now.disk().problem().isEmpty()) {
      health.withDetail("diskCache", now.disk().problem());
    }
    Duration idle = sinceProgress(now);
    if (!now.alive()) {
      health.down().withDetail("reason", "The engine serves no requests any more");
    } else if (idle.compareTo(stuckAfter) > 0) {
      health
          .down()
          .withDetail(
              "reason",
              "%d sessions are running, but no step ended for %d s"
                  .formatted(now.running(), idle.toSeconds()));
    } else {
      health.up();
    }
  }

  /** How long running sessions have been seen without a new step; zero if nothing runs. */
  private Duration sinceProgress(EngineStats now) {
    long nanos = nanoTime.getAsLong();
    Progress last =
        progress.updateAndGet(
            seen ->
                now.running() == 0 || now.steps() != seen.steps()
                    ? new Progress(now.steps(), nanos)
                    : seen);
    return Duration.ofNanos(nanos - last.nanos());
  }
}
