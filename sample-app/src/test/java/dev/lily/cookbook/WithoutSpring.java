package dev.lily.cookbook;

import dev.lily.engine.EngineOptions;
import dev.lily.engine.LilyEngine;
import dev.lily.engine.generation.GenerationEvent;
import dev.lily.engine.generation.GenerationHandle;
import dev.lily.engine.generation.GenerationRequest;
import dev.lily.engine.generation.GenerationResult;
import java.nio.file.Path;

/** The engine alone. */
final class WithoutSpring {

  private WithoutSpring() {}

  static void answer() {
    // tag::open[]
    EngineOptions options = EngineOptions.builder(Path.of("models/lily-nano-4bit")).build();
    try (LilyEngine engine = LilyEngine.open(options)) {
      GenerationResult answer = engine.generate(GenerationRequest.of("What is 47 + 38?"));
      System.out.println(answer.reasoning());
      System.out.println(answer.text());
    }
    // end::open[]
  }

  static void stream(LilyEngine engine) throws InterruptedException {
    // tag::submit[]
    GenerationHandle handle =
        engine.submit(
            GenerationRequest.of("Tell me a story about a fox named Mia."),
            event -> {
              switch (event) {
                case GenerationEvent.Output output -> output.parts().forEach(System.out::println);
                case GenerationEvent.Completed completed -> System.out.println(completed.usage());
                case GenerationEvent.Failed failed ->
                    System.err.println(failed.cause().getMessage());
                case GenerationEvent.PromptProgress progress -> {}
              }
            });
    handle.await();
    // end::submit[]
  }
}
