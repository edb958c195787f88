package dev.lily.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.withinPercentage;

import dev.lily.engine.chat.Conversation;
import dev.lily.engine.chat.Message;
import dev.lily.engine.generation.GenerationHandle;
import dev.lily.engine.generation.GenerationRequest;
import dev.lily.engine.generation.ResultCollector;
import dev.lily.engine.model.StatePool;
import dev.lily.engine.sampling.SamplingOptions;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.Test;

/** What the engine says of its memory is what its parts hold, for the test model on the CPU. */
class LiveMemoryTest {
  private static final int SESSIONS = 3;

  private static GenerationRequest request(int turn, int length) {
    return GenerationRequest.builder(
            Conversation.of(
                new Message.Instructions("Answer user " + turn % 2 + "."),
                new Message.User("fox ".repeat(length))))
        .thinking(false)
        .sampling(SamplingOptions.GREEDY)
        .maxTokens(8)
        .build();
  }

  @Test
  void showsWhatIsInUseAfterMixedWork() throws InterruptedException {
    EngineOptions options =
        EngineOptions.builder(Path.of(Objects.requireNonNull(System.getProperty("lily.nano.dir"))))
            .backend("cpu")
            .contextLength(512)
            .maxSessions(SESSIONS)
            .build();
    LoadedModel loaded = ModelLoader.load(options);
    MemoryPlan plan = loaded.plan();
    StatePool states = loaded.model().states();
    try (LilyEngine engine = new LilyEngine(loaded, options)) {
      List<GenerationHandle> handles = new ArrayList<>();
      for (int i = 0; i < 4 * SESSIONS; i++) {
        handles.add(engine.submit(request(i, 1 + 17 * (i % 5)), new ResultCollector()));
        if (i % 5 == 4) {
          handles.get(i - 2).cancel();
        }
        EngineStats.Memory now = engine.stats().memory();
        assertThat(now.kvCacheBytes()).isBetween(0L, plan.kvCacheBytes());
        assertThat(now.stateBytes()).isBetween(0L, plan.stateBytes());
        assertThat(now.snapshotBytes()).isBetween(0L, plan.snapshotBytes());
        assertThat(now.usedBytes()).isLessThanOrEqualTo(plan.totalBytes());
      }
      for (GenerationHandle handle : handles) {
        handle.await();
      }
      EngineStats stats = engine.stats();
      EngineStats.Memory memory = stats.memory();
      assertThat(memory.weightBytes()).isEqualTo(plan.weightBytes());
      assertThat(memory.scratchBytes()).isEqualTo(plan.scratchBytes());
      assertThat(memory.stateBytes()).as("nobody is served").isZero();
      assertThat(stats.cache().snapshots()).isPositive();
      assertThat(memory.kvCacheBytes() + memory.snapshotBytes())
          .as("only the cache holds something")
          .isEqualTo(stats.cache().bytes());
    }
    long page = plan.kvBytesPerToken() * loaded.model().layout().pageTokens();
    int snapshots = loaded.model().layout().numSlots() - SESSIONS;
    long slot = plan.snapshotBytes() / snapshots;
    long samplers = plan.stateBytes() - SESSIONS * slot;
    assertThat(states.mostSlots()).isGreaterThan(SESSIONS);
    assertThat(states.device().allocatedBytes())
        .as("pages and slots that were ever in use, by the plan's sizes")
        .isCloseTo(
            states.mostPages() * page + states.mostSlots() * slot + samplers, withinPercentage(2))
        .isLessThan(plan.kvCacheBytes() + plan.stateBytes() + plan.snapshotBytes());
  }
}
