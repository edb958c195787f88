package dev.lily.metal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.EngineOptions;
import dev.lily.engine.LilyEngine;
import dev.lily.engine.chat.Conversation;
import dev.lily.engine.chat.Message;
import dev.lily.engine.generation.GenerationHandle;
import dev.lily.engine.generation.GenerationRequest;
import dev.lily.engine.generation.GenerationResult;
import dev.lily.engine.generation.ResultCollector;
import dev.lily.engine.generation.SpeculationOptions;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.metal.device.MetalGpu;
import dev.lily.metal.device.MetalGpuExtension;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** The test model copies from its prompt, with drafts and without, while passes overlap. */
@ExtendWith(MetalGpuExtension.class)
class SpeculationTest {
  private static final List<String> QUESTIONS =
      List.of(
          "Repeat: The quick brown fox jumps over the lazy dog and runs home to the red house.",
          "What is 47 + 38?");

  @BeforeEach
  void useKernels(MetalGpu metal) {
    metal.useFastKernels();
  }

  private static LilyEngine open(SpeculationOptions speculation) {
    return LilyEngine.open(
        EngineOptions.builder(Path.of(System.getProperty("lily.nano.dir")))
            .backend("metal")
            .contextLength(128)
            .maxSessions(2)
            .speculation(speculation)
            .build());
  }

  private static List<GenerationResult> answers(LilyEngine engine) throws InterruptedException {
    List<ResultCollector> collectors = new ArrayList<>();
    List<GenerationHandle> handles = new ArrayList<>();
    for (String question : QUESTIONS) {
      collectors.add(new ResultCollector());
      GenerationRequest request =
          GenerationRequest.builder(Conversation.of(new Message.User(question)))
              .thinking(false)
              .sampling(SamplingOptions.GREEDY)
              .maxTokens(40)
              .build();
      handles.add(engine.submit(request, collectors.getLast()));
    }
    for (GenerationHandle handle : handles) {
      handle.await();
    }
    return collectors.stream().map(ResultCollector::result).toList();
  }

  @Test
  void greedyAnswersAreThoseWithoutDrafts() throws InterruptedException {
    List<GenerationResult> plain;
    try (LilyEngine engine = open(SpeculationOptions.OFF)) {
      plain = answers(engine);
    }
    assertThat(plain.getFirst().text()).endsWith("runs home to the red house.");
    try (LilyEngine engine =
        open(new SpeculationOptions(SpeculationOptions.Mode.PROMPT_LOOKUP, 4))) {
      List<GenerationResult> drafted = answers(engine);
      assertThat(drafted)
          .extracting(GenerationResult::text)
          .isEqualTo(plain.stream().map(GenerationResult::text).toList());
      assertThat(drafted)
          .extracting(GenerationResult::usage)
          .isEqualTo(plain.stream().map(GenerationResult::usage).toList());
      assertThat(engine.stats().speculation().drafted())
          .as("how many depends on the time that passes take; the first are free")
          .isPositive();
    }
  }
}
