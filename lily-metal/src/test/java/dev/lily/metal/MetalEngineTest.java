package dev.lily.metal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.EngineOptions;
import dev.lily.engine.LilyEngine;
import dev.lily.engine.chat.Conversation;
import dev.lily.engine.chat.Message;
import dev.lily.engine.generation.FinishReason;
import dev.lily.engine.generation.GenerationRequest;
import dev.lily.engine.generation.GenerationResult;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.metal.device.MetalDouble;
import dev.lily.metal.device.MetalGpu;
import dev.lily.metal.device.MetalGpuExtension;
import dev.lily.metal.msl.KernelLibraries;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** lily-nano from the request to the answer on Metal. */
@ExtendWith(MetalGpuExtension.class)
class MetalEngineTest {
  private static GenerationRequest.Builder hello() {
    return GenerationRequest.builder(Conversation.of(new Message.User("Hello!"))).thinking(false);
  }

  /** So hot that the seed decides. */
  private static GenerationRequest seeded(long seed) {
    SamplingOptions options =
        SamplingOptions.builder().temperature(8.0).topK(50).topP(1.0).seed(seed).build();
    return hello().sampling(options).minTokens(6).maxTokens(6).build();
  }

  private static LilyEngine open(String backend) {
    Path nano = Path.of(System.getProperty("lily.nano.dir"));
    return LilyEngine.open(
        EngineOptions.builder(nano).backend(backend).contextLength(256).maxSessions(2).build());
  }

  @Test
  void answersAsTheProcessorDoes(MetalGpu gpu) {
    gpu.useFastKernels();
    GenerationRequest request = hello().sampling(SamplingOptions.GREEDY).build();
    try (LilyEngine engine = open("metal");
        LilyEngine processor = open("cpu")) {
      GenerationResult result = engine.generate(request);
      assertThat(result.text()).isEqualTo(processor.generate(request).text()).startsWith("Hello");
      assertThat(result.finishReason()).isEqualTo(FinishReason.STOP);
    }
  }

  @Test
  void answersTheSameThroughTensorOperations(MetalGpu gpu) {
    MetalDouble metal = gpu.requireDouble();
    metal.useFastKernels();
    metal.set("family", 1010);
    GenerationRequest request = hello().sampling(SamplingOptions.GREEDY).build();
    try (LilyEngine engine = open("metal");
        LilyEngine processor = open("cpu")) {
      assertThat(engine.generate(request).text()).isEqualTo(processor.generate(request).text());
    }
  }

  @Test
  void lacksNoBarrierAndHasNoneThatOrdersNothing(MetalGpu gpu) {
    MetalDouble metal = gpu.requireDouble();
    metal.useKernels();
    try (LilyEngine engine = open("metal")) {
      engine.generate(hello().sampling(SamplingOptions.GREEDY).maxTokens(2).build());
    }
    assertThat(metal.get("dispatches")).isPositive();
    if (KernelLibraries.given().isEmpty()) { // a GPU does not tell what its kernels touch
      assertThat(metal.notes()).as("barriers that order nothing").isEmpty();
    }
  }

  @Test
  void drawsTheSameForASeedAndOtherwiseForAnother(MetalGpu gpu) {
    gpu.useFastKernels();
    try (LilyEngine engine = open("metal")) {
      GenerationResult result = engine.generate(seeded(7));
      assertThat(result.usage().completionTokens()).isEqualTo(6);
      assertThat(engine.generate(seeded(7)).text()).isEqualTo(result.text());
      assertThat(engine.generate(seeded(8)).text()).isNotEqualTo(result.text());
    }
  }
}
