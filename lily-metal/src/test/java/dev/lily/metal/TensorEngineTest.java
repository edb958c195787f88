package dev.lily.metal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.EngineOptions;
import dev.lily.engine.LilyEngine;
import dev.lily.engine.chat.Conversation;
import dev.lily.engine.chat.Message;
import dev.lily.engine.generation.GenerationRequest;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.metal.device.MetalDouble;
import dev.lily.metal.device.MetalDoubleExtension;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** lily-nano through tensor operations, as on a GPU that has hardware for them. */
@ExtendWith(MetalDoubleExtension.class)
class TensorEngineTest {
  private static final GenerationRequest HELLO =
      GenerationRequest.builder(Conversation.of(new Message.User("Hello!")))
          .thinking(false)
          .sampling(SamplingOptions.GREEDY)
          .build();

  private static String answer(String backend) {
    Path nano = Path.of(System.getProperty("lily.nano.dir"));
    EngineOptions options =
        EngineOptions.builder(nano).backend(backend).contextLength(256).maxSessions(2).build();
    try (LilyEngine engine = LilyEngine.open(options)) {
      return engine.generate(HELLO).text();
    }
  }

  @Test
  void answersAsTheProcessorDoes(MetalDouble metal) {
    metal.useKernels();
    metal.set("family", 1010);
    assertThat(answer("metal")).isEqualTo(answer("cpu"));
  }
}
