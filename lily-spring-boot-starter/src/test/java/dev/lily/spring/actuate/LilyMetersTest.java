package dev.lily.spring.actuate;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.EngineStats;
import dev.lily.engine.generation.Timings;
import dev.lily.engine.generation.Usage;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;

class LilyMetersTest {

  private static final EngineStats.Cache CACHE = new EngineStats.Cache(7, 13, 2, 5, 4096, 8192);
  private static final EngineStats.Speculation DRAFTS = new EngineStats.Speculation(40, 30);

  private static final EngineStats.Disk DISK =
      new EngineStats.Disk(11, 16384, 3, 17, 4, 1, "The disk is full");
  private static final EngineStats.Memory MEMORY = new EngineStats.Memory(1, 2, 3, 4, 5, 6);

  private final MeterRegistry registry = new SimpleMeterRegistry();

  private double counter(String name, String tag, String value) {
    return registry.get(name).tag(tag, value).functionCounter().count();
  }

  @Test
  void readsTheEnginesCountersWhenAsked() {
    EngineStats[] now = {
      new EngineStats(
          2, 1, 20, 3, 10, 4, 5, 1000, 300, 700, 900, 6, 64, CACHE, DISK, DRAFTS, MEMORY, "", true)
    };
    Supplier<EngineStats> stats = () -> now[0];
    new LilyMeterBinder(stats).bindTo(registry);

    assertThat(counter("lily.requests", "outcome", "completed")).isEqualTo(10);
    assertThat(counter("lily.requests", "outcome", "cancelled")).isEqualTo(4);
    assertThat(counter("lily.requests", "outcome", "failed")).isEqualTo(5);
    assertThat(counter("lily.requests", "outcome", "rejected")).isEqualTo(3);
    assertThat(counter("lily.tokens", "type", "prompt")).isEqualTo(1000);
    assertThat(counter("lily.tokens", "type", "cached")).isEqualTo(300);
    assertThat(counter("lily.tokens", "type", "generated")).isEqualTo(700);
    assertThat(counter("lily.cache.prompts", "result", "hit")).isEqualTo(7);
    assertThat(counter("lily.cache.prompts", "result", "miss")).isEqualTo(13);
    assertThat(registry.get("lily.cache.evictions").functionCounter().count()).isEqualTo(2);
    assertThat(registry.get("lily.cache.snapshots").gauge().value()).isEqualTo(5);
    assertThat(registry.get("lily.cache.size").tag("state", "used").gauge().value())
        .isEqualTo(4096);
    assertThat(registry.get("lily.cache.size").tag("state", "total").gauge().value())
        .isEqualTo(8192);
    assertThat(registry.get("lily.cache.disk.entries").gauge().value()).isEqualTo(11);
    assertThat(registry.get("lily.cache.disk.size").gauge().value()).isEqualTo(16384);
    assertThat(registry.get("lily.cache.disk.hits").functionCounter().count()).isEqualTo(3);
    assertThat(registry.get("lily.cache.disk.writes").functionCounter().count()).isEqualTo(17);
    assertThat(registry.get("lily.cache.disk.dropped").functionCounter().count()).isEqualTo(4);
    assertThat(registry.get("lily.cache.disk.failures").functionCounter().count()).isEqualTo(1);
    assertThat(counter("lily.speculation.tokens", "result", "accepted")).isEqualTo(30);
    assertThat(counter("lily.speculation.tokens", "result", "rejected")).isEqualTo(10);
    assertThat(registry.get("lily.steps").functionCounter().count()).isEqualTo(900);
    assertThat(registry.get("lily.queue.size").gauge().value()).isEqualTo(2);
    assertThat(registry.get("lily.sessions.active").gauge().value()).isEqualTo(1);
    assertThat(registry.get("lily.kv.pages").tag("state", "used").gauge().value()).isEqualTo(6);
    assertThat(registry.get("lily.kv.pages").tag("state", "total").gauge().value()).isEqualTo(64);

    now[0] =
        new EngineStats(
            0, 0, 21, 3, 11, 4, 5, 1100, 300, 750, 950, 0, 64, CACHE, DISK, DRAFTS, MEMORY, "",
            true);
    assertThat(counter("lily.requests", "outcome", "completed")).isEqualTo(11);
    assertThat(registry.get("lily.kv.pages").tag("state", "used").gauge().value()).isZero();
  }

  @Test
  void recordsTimeToFirstTokenAndSpeedOfAnAnswer() {
    MeteredAnswerRecorder recorder = new MeteredAnswerRecorder(registry);
    recorder.record(new Usage(10, 21, 0, 0), timings(250, 500));
    assertThat(registry.get("lily.time.to.first.token").timer().totalTime(TimeUnit.MILLISECONDS))
        .isEqualTo(250);
    assertThat(registry.get("lily.tokens.per.second").summary().mean()).isEqualTo(40);
  }

  @Test
  void recordsNoSpeedOfASingleTokenAndNothingWithoutAny() {
    MeteredAnswerRecorder recorder = new MeteredAnswerRecorder(registry);
    recorder.record(new Usage(10, 0, 0, 0), timings(0, 0));
    recorder.record(new Usage(10, 1, 0, 0), timings(250, 0));
    assertThat(registry.get("lily.time.to.first.token").timer().count()).isEqualTo(1);
    assertThat(registry.get("lily.tokens.per.second").summary().count()).isZero();
  }

  private static Timings timings(long firstTokenMillis, long decodeMillis) {
    return new Timings(
        Duration.ZERO,
        Duration.ZERO,
        Duration.ofMillis(firstTokenMillis),
        Duration.ofMillis(decodeMillis));
  }
}
