package dev.lily.spring.metal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.lily.engine.LilyEngine;
import dev.lily.metal.device.MetalDouble;
import dev.lily.metal.device.MetalDoubleExtension;
import dev.lily.spring.Nano;
import dev.lily.spring.actuate.LilyHealthIndicator;
import dev.lily.spring.actuate.MemoryDetails;
import dev.lily.spring.autoconfigure.LilyActuatorAutoConfiguration;
import dev.lily.spring.autoconfigure.LilyChatAutoConfiguration;
import dev.lily.spring.autoconfigure.LilyEngineAutoConfiguration;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.ai.chat.model.ChatModel;
import org.springframework.ai.chat.prompt.Prompt;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.health.contributor.Health;
import org.springframework.boot.health.contributor.Status;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import reactor.test.StepVerifier;

/** An application on {@code lily.backend=metal}, with the double of Metal below. */
@Tag("metal-double")
@ExtendWith(MetalDoubleExtension.class)
@Timeout(600)
class MetalChatModelTest {

  private static final Duration PATIENCE = Duration.ofMinutes(5);

  private final ApplicationContextRunner runner =
      new ApplicationContextRunner()
          .withConfiguration(
              AutoConfigurations.of(
                  LilyEngineAutoConfiguration.class,
                  LilyChatAutoConfiguration.class,
                  LilyActuatorAutoConfiguration.class))
          .withPropertyValues(
              "lily.model=" + Nano.DIRECTORY,
              "lily.backend=metal",
              "lily.context-length=256",
              "lily.max-sessions=1",
              "lily.chat.temperature=0",
              "lily.chat.thinking=false");

  @BeforeEach
  void useKernels(MetalDouble metal) {
    metal.useFastKernels();
  }

  @Test
  void streamsTheProcessorsAnswerPieceByPiece() {
    List<String> pieces = new ArrayList<>();
    runner.run(
        context ->
            context.getBean(ChatModel.class).stream(new Prompt("Hello!"))
                .map(response -> Objects.requireNonNull(response.getResult()).getOutput())
                .mapNotNull(message -> message.getText())
                .filter(text -> !text.isEmpty())
                .doOnNext(pieces::add)
                .blockLast(PATIENCE));
    assertThat(pieces).hasSizeGreaterThan(3);
    runner
        .withPropertyValues("lily.backend=cpu")
        .run(
            context ->
                assertThat(String.join("", pieces))
                    .isEqualTo(context.getBean(ChatModel.class).call("Hello!")));
  }

  @Test
  void endsTheRequestOfASubscriberThatLeavesAndServesTheNext() {
    runner.run(
        context -> {
          ChatModel model = context.getBean(ChatModel.class);
          LilyEngine engine = context.getBean(LilyEngine.class);
          StepVerifier.create(model.stream(new Prompt("Tell me a story.")), 2)
              .expectNextCount(2)
              .thenCancel()
              .verify(PATIENCE);
          await().atMost(PATIENCE).until(() -> engine.stats().running() == 0);
          assertThat(engine.stats().cancelled()).isEqualTo(1);
          long generated = engine.stats().generatedTokens();
          assertThat(generated).as("tokens of a story that goes on").isLessThan(20);
          assertThat(model.call("Hello!")).startsWith("Hello");
        });
  }

  @Test
  void showsTheDeviceInItsHealth(MetalDouble metal) {
    runner.run(
        context -> {
          Health health = context.getBean(LilyHealthIndicator.class).health();
          assertThat(health.getStatus()).isEqualTo(Status.UP);
          String device = context.getBean(LilyEngine.class).model().device();
          assertThat(device).isNotBlank();
          assertThat(health.getDetails())
              .containsEntry("backend", "metal")
              .containsEntry("device", device)
              .containsEntry("backendReason", "metal as configured (" + device + ")");
          assertThat(health.getDetails().get("deviceDetail").toString()).contains("APPLE9");
          MemoryDetails memory = (MemoryDetails) health.getDetails().get("memory");
          assertThat(memory.budgetBytes()).isEqualTo(metal.get("recommended"));
          assertThat(memory.totalBytes()).isPositive().isLessThan(memory.budgetBytes());
        });
  }
}
