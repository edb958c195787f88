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
import dev.lily.metal.device.MetalDoubleExtension;
import dev.lily.metal.msl.KernelLibraries;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** lily-nano from the request to the answer on the double of Metal. */
@ExtendWith(MetalDoubleExtension.class)
class MetalEngineTest {
  private static final GenerationRequest HELLO =
      GenerationRequest.builder(Conversation.of(new Message.User("Hello!")))
          .thinking(false)
          .sampling(SamplingOptions.GREEDY)
          .build();

  private static GenerationResult answer(String backend) {
    Path nano = Path.of(System.getProperty("lily.nano.dir"));
    EngineOptions options =
        EngineOptions.builder(nano).backend(backend).contextLength(256).maxSessions(2).build();
    try (LilyEngine engine = LilyEngine.open(options)) {
      return engine.generate(HELLO);
    }
  }

  @Test
  void answersAsTheProcessorDoes(MetalDouble metal) {
    metal.useKernels();
    GenerationResult result = answer("metal");
    assertThat(result.text()).isEqualTo(answer("cpu").text()).startsWith("Hello");
    assertThat(result.finishReason()).isEqualTo(FinishReason.STOP);
    if (KernelLibraries.given().isEmpty()) { // a GPU does not tell what its kernels touch
      assertThat(metal.notes()).as("barriers that order nothing").isEmpty();
    }
  }

  @Test
  void answersTheSameThroughTensorOperations(MetalDouble metal) {
    metal.useKernels();
    metal.set("family", 1010);
    assertThat(answer("metal").text()).isEqualTo(answer("cpu").text());
  }
}
