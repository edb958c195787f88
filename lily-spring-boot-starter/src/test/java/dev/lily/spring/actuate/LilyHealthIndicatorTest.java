package dev.lily.spring.actuate;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.EngineStats;
import dev.lily.engine.MemoryPlan;
import dev.lily.engine.ModelInfo;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.springframework.boot.health.contributor.Health;
import org.springframework.boot.health.contributor.Status;

class LilyHealthIndicatorTest {

  private static final ModelInfo MODEL =
      new ModelInfo(
          "lily-nano-4bit",
          "qwen3_5_moe",
          18_400_000,
          10_500_000,
          2048,
          "cpu",
          "A processor",
          "scalar, 2 threads",
          "cpu (A processor)",
          "int8",
          List.of("The checkpoint's chat template differs."));
  private static final EngineStats.Cache CACHE = new EngineStats.Cache(7, 13, 2, 5, 4096, 8192);
  private static final EngineStats.Memory MEMORY = new EngineStats.Memory(1, 2, 3, 4, 5, 6);
  private static final MemoryPlan PLAN = new MemoryPlan(10, 20, 3, 4, 6, 7, 5, 100, 2048, 8);

  private EngineStats stats = stats(0, 0, 0, true, "");
  private boolean draining;
  private long nanos;

  private final LilyHealthIndicator indicator =
      new LilyHealthIndicator(
          MODEL, PLAN, () -> stats, () -> draining, Duration.ofSeconds(120), () -> nanos);

  static EngineStats stats(int queued, int running, long steps, boolean alive, String lastFailure) {
    return new EngineStats(
        queued,
        running,
        9,
        2,
        4,
        1,
        1,
        100,
        30,
        50,
        steps,
        3,
        64,
        CACHE,
        new EngineStats.Disk(0, 0, 0, 0, 0, 0, "The disk is full"),
        new EngineStats.Speculation(0, 0),
        MEMORY,
        lastFailure,
        alive);
  }

  private Health healthAfter(Duration time) {
    nanos += time.toNanos();
    return indicator.health();
  }

  @Test
  void isUpWithDetailsOfModelDeviceMemoryAndQueue() {
    stats = stats(2, 1, 7, true, "The device failed once");
    Health health = healthAfter(Duration.ZERO);
    assertThat(health.getStatus()).isEqualTo(Status.UP);
    assertThat(health.getDetails())
        .containsEntry("model", "lily-nano-4bit")
        .containsEntry("backend", "cpu")
        .containsEntry("device", "A processor")
        .containsEntry("deviceDetail", "scalar, 2 threads")
        .containsEntry("backendReason", "cpu (A processor)")
        .containsEntry("kvCache", "int8")
        .containsEntry("memory", new MemoryDetails(45, 100, 10, 20, 3, 4, 6, 7, 5, 2048, 8))
        .containsEntry("notes", List.of("The checkpoint's chat template differs."))
        .containsEntry("queued", 2)
        .containsEntry("running", 1)
        .containsEntry("kvPagesUsed", 3)
        .containsEntry("kvPages", 64)
        .containsEntry("memoryInUse", MEMORY)
        .containsEntry("cache", CACHE)
        .containsEntry("diskCache", "The disk is full")
        .containsEntry("lastFailure", "The device failed once");
  }

  @Test
  void isDownWhenTheEngineServesNothing() {
    stats = stats(0, 0, 7, false, "The engine thread ended");
    assertThat(healthAfter(Duration.ZERO).getStatus()).isEqualTo(Status.DOWN);
  }

  @Test
  void isOutOfServiceWhileDrainingEvenThoughTheEngineTakesNothing() {
    draining = true;
    stats = stats(0, 1, 7, false, "");
    assertThat(healthAfter(Duration.ZERO).getStatus()).isEqualTo(Status.OUT_OF_SERVICE);
  }

  @Test
  void isDownWhenRunningSessionsMakeNoStepForTooLong() {
    stats = stats(0, 1, 7, true, "");
    assertThat(healthAfter(Duration.ZERO).getStatus()).isEqualTo(Status.UP);
    assertThat(healthAfter(Duration.ofSeconds(120)).getStatus()).isEqualTo(Status.UP);
    Health stuck = healthAfter(Duration.ofSeconds(1));
    assertThat(stuck.getStatus()).isEqualTo(Status.DOWN);
    assertThat(stuck.getDetails())
        .containsEntry("reason", "1 sessions are running, but no step ended for 121 s");
  }

  @Test
  void isUpAgainAfterTheNextStep() {
    stats = stats(0, 1, 7, true, "");
    healthAfter(Duration.ZERO);
    assertThat(healthAfter(Duration.ofSeconds(500)).getStatus()).isEqualTo(Status.DOWN);
    stats = stats(0, 1, 8, true, "");
    assertThat(healthAfter(Duration.ofSeconds(500)).getStatus()).isEqualTo(Status.UP);
  }

  @Test
  void staysUpHoweverLongNothingRuns() {
    healthAfter(Duration.ZERO);
    assertThat(healthAfter(Duration.ofDays(3)).getStatus()).isEqualTo(Status.UP);
    stats = stats(0, 1, 0, true, "");
    assertThat(healthAfter(Duration.ofSeconds(1)).getStatus()).isEqualTo(Status.UP);
  }

  @Test
  void staysUpWithAFullQueue() {
    stats = stats(64, 8, 7, true, "");
    assertThat(healthAfter(Duration.ZERO).getStatus()).isEqualTo(Status.UP);
  }
}
