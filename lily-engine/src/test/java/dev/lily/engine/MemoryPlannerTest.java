package dev.lily.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.BackendSelector;
import dev.lily.engine.checkpoint.Checkpoint;
import dev.lily.engine.generation.SpeculationOptions;
import dev.lily.engine.model.qwen35moe.Qwen35Config;
import java.nio.file.Path;
import java.util.Objects;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What the prefix cache gets of the memory, for the test model's sizes. */
class MemoryPlannerTest {
  private static final Path NANO =
      Path.of(Objects.requireNonNull(System.getProperty("lily.nano.dir")));
  private static final long WEIGHTS = 10_000_000;
  private static final int SESSIONS = 2;

  private final Backend backend =
      BackendSelector.select("cpu").provider().open(BackendOptions.DEFAULT);

  @AfterEach
  void close() {
    backend.close();
  }

  private static EngineOptions.Builder options() {
    return EngineOptions.builder(NANO).maxSessions(SESSIONS).contextLength(1024);
  }

  private MemoryPlanner.Sizes plan(EngineOptions.Builder options) {
    try (Checkpoint checkpoint = Checkpoint.open(NANO)) {
      Qwen35Config config = Qwen35Config.read(checkpoint.config(), NANO.resolve("config.json"));
      return new MemoryPlanner(config, backend, options.build(), WEIGHTS, config.vocabSize())
          .plan();
    }
  }

  private static int snapshots(MemoryPlanner.Sizes sizes) {
    return sizes.layout().numSlots() - SESSIONS;
  }

  @Test
  void givesTheCacheAFewSnapshotsForEachSession() {
    MemoryPlanner.Sizes sizes = plan(options());
    MemoryPlan plan = sizes.plan();
    long snapshot = plan.snapshotBytes() / snapshots(sizes);
    assertThat(snapshot).isEqualTo(sizes.layout().slotElements() * Float.BYTES);
    assertThat(plan.cacheBytes()).isEqualTo(8 * (snapshot + 1024 * plan.kvBytesPerToken()));
    assertThat(plan.snapshotBytes()).isLessThanOrEqualTo(plan.cacheBytes());
    assertThat(snapshots(sizes)).isGreaterThanOrEqualTo(8);
    assertThat(plan.totalBytes())
        .isEqualTo(
            WEIGHTS
                + plan.kvCacheBytes()
                + plan.stateBytes()
                + plan.snapshotBytes()
                + plan.scratchBytes());
  }

  @Test
  void givesSpeculatingSessionsASecondSlotAndRowsForDrafts() {
    MemoryPlanner.Sizes without = plan(options());
    MemoryPlanner.Sizes sizes =
        plan(
            options()
                .speculation(new SpeculationOptions(SpeculationOptions.Mode.PROMPT_LOOKUP, 4)));
    long slot = sizes.layout().slotElements() * Float.BYTES;
    assertThat(sizes.layout().numSlots()).isEqualTo(without.layout().numSlots() + SESSIONS);
    assertThat(sizes.plan().stateBytes()).isEqualTo(without.plan().stateBytes() + SESSIONS * slot);
    assertThat(sizes.limits().maxSequences()).isEqualTo(SESSIONS);
    assertThat(sizes.limits().maxLogitRows()).isEqualTo(SESSIONS * 5);
    assertThat(sizes.limits().maxRows()).isEqualTo(without.limits().maxRows() + SESSIONS * 4);
    assertThat(sizes.plan().scratchBytes()).isGreaterThan(without.plan().scratchBytes());
    assertThat(sizes.plan().snapshotBytes()).isEqualTo(without.plan().snapshotBytes());
  }

  @Test
  void givesItAQuarterOfWhatIsLeftAtMost() {
    MemoryPlan without = plan(options().cacheBytes(0L)).plan();
    long fixed = WEIGHTS + without.stateBytes() + without.scratchBytes();
    long left = 4 * without.kvCacheBytes();
    MemoryPlan plan = plan(options().memoryLimitBytes(fixed + left)).plan();
    assertThat(plan.cacheBytes()).isEqualTo(left / 4);
    assertThat(plan.kvCacheBytes()).isEqualTo(without.kvCacheBytes());
  }

  @Test
  void leavesTheSessionOfAContextThatWasAskedForItsPages() {
    MemoryPlan without = plan(options().cacheBytes(0L)).plan();
    long fixed = WEIGHTS + without.stateBytes() + without.scratchBytes();
    long session = without.kvCacheBytes() / SESSIONS;
    MemoryPlanner.Sizes tight = plan(options().memoryLimitBytes(fixed + session + 1000));
    assertThat(tight.plan().contextLength()).isEqualTo(1024);
    assertThat(tight.plan().cacheBytes()).isZero();
    assertThat(snapshots(tight)).isZero();
    MemoryPlan shortened =
        plan(options().contextLength(null).memoryLimitBytes(fixed + 4 * session)).plan();
    long left = fixed + 4 * session - WEIGHTS - shortened.stateBytes() - shortened.scratchBytes();
    assertThat(shortened.cacheBytes()).isEqualTo(left / 4);
    assertThat(shortened.contextLength()).isGreaterThan(1024);
  }

  @Test
  void givesItWhatWasAskedForOrRefuses() {
    MemoryPlanner.Sizes off = plan(options().cacheBytes(0L));
    assertThat(off.plan().cacheBytes()).isZero();
    assertThat(snapshots(off)).isZero();
    MemoryPlanner.Sizes asked = plan(options().cacheBytes(20_000_000L));
    assertThat(asked.plan().cacheBytes()).isEqualTo(20_000_000L);
    assertThat(snapshots(asked)).isBetween(10, 20);
    assertThatThrownBy(() -> plan(options().cacheBytes(1000L)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("cacheBytes is 1000")
        .hasMessageContaining("Raise lily.cache.bytes");
    assertThatThrownBy(() -> plan(options().cacheBytes(1L << 32).memoryLimitBytes(1L << 30)))
        .isInstanceOf(ModelDoesNotFitException.class)
        .hasMessageContaining("snapshots 3.")
        .hasMessageContaining("lily.cache.bytes");
  }
}
