package dev.lily.spring.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.lily.engine.LilyEngine;
import dev.lily.engine.generation.EngineClosedException;
import dev.lily.spring.Nano;
import dev.lily.spring.ai.LilyChatModel;
import dev.lily.spring.ai.LilyChatOptions;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.ai.chat.model.ChatResponse;
import org.springframework.ai.chat.prompt.Prompt;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.availability.AvailabilityChangeEvent;
import org.springframework.boot.availability.ReadinessState;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.ApplicationListener;
import org.springframework.context.ConfigurableApplicationContext;
import reactor.core.publisher.Flux;

@Timeout(120)
class LilyEngineLifecycleTest {

  private final List<Object> readiness = new CopyOnWriteArrayList<>();

  private final ApplicationContextRunner runner =
      new ApplicationContextRunner()
          .withConfiguration(
              AutoConfigurations.of(
                  LilyEngineAutoConfiguration.class, LilyChatAutoConfiguration.class))
          .withPropertyValues("lily.model=" + Nano.DIRECTORY, "lily.context-length=2048");

  private static Flux<ChatResponse> story(LilyChatModel model, int tokens) {
    return model.stream(
        new Prompt(
            "Tell me a story.",
            LilyChatOptions.builder()
                .temperature(0.0)
                .thinking(false)
                .minTokens(tokens)
                .maxTokens(tokens)
                .build()));
  }

  /** How a stream ended, and a signal once it has begun. */
  private static final class Ending {
    final CountDownLatch begun = new CountDownLatch(1);
    final CountDownLatch over = new CountDownLatch(1);
    final AtomicReference<Throwable> error = new AtomicReference<>();
    final AtomicReference<ChatResponse> last = new AtomicReference<>();

    Ending(Flux<ChatResponse> stream) {
      stream.subscribe(
          chunk -> {
            last.set(chunk);
            begun.countDown();
          },
          e -> {
            error.set(e);
            begun.countDown();
            over.countDown();
          },
          over::countDown);
    }
  }

  private static void close(org.springframework.context.ApplicationContext context) {
    ((ConfigurableApplicationContext) context).close();
  }

  @Test
  void letsRunningAnswersEndWithinTheGrace() {
    runner
        .withPropertyValues("lily.shutdown-grace=60s")
        .run(
            context -> {
              LilyEngine engine = context.getBean(LilyEngine.class);
              Ending ending = new Ending(story(context.getBean(LilyChatModel.class), 40));
              ending.begun.await();
              close(context.getSourceApplicationContext());
              ending.over.await();
              assertThat(ending.error.get()).isNull();
              assertThat(ending.last.get().getMetadata().getUsage().getCompletionTokens())
                  .isEqualTo(40);
              assertThat(engine.stats().alive()).isFalse();
            });
  }

  @Test
  void endsAnswersWithAnErrorWhenTheGraceIsOver() {
    runner
        .withPropertyValues("lily.shutdown-grace=0s")
        .run(
            context -> {
              LilyEngine engine = context.getBean(LilyEngine.class);
              Ending ending = new Ending(story(context.getBean(LilyChatModel.class), 1900));
              ending.begun.await();
              close(context.getSourceApplicationContext());
              ending.over.await();
              assertThat(ending.error.get()).isInstanceOf(EngineClosedException.class);
              assertThat(engine.stats().alive()).isFalse();
            });
  }

  @Test
  void refusesNewRequestsWhileItDrains() {
    CountDownLatch refusing = new CountDownLatch(1);
    ApplicationListener<AvailabilityChangeEvent<ReadinessState>> listener =
        event -> {
          readiness.add(event.getState());
          refusing.countDown();
        };
    runner
        .withPropertyValues("lily.shutdown-grace=60s")
        .withInitializer(context -> context.addApplicationListener(listener))
        .run(
            context -> {
              LilyChatModel model = context.getBean(LilyChatModel.class);
              LilyEngineLifecycle lifecycle = context.getBean(LilyEngineLifecycle.class);
              assertThat(lifecycle.isDraining()).isFalse();
              Ending ending = new Ending(story(model, 150));
              ending.begun.await();
              Thread closing =
                  Thread.ofPlatform().start(() -> close(context.getSourceApplicationContext()));
              refusing.await();
              assertThat(lifecycle.isDraining()).isTrue();
              while (context.getBean(LilyEngine.class).stats().alive()) {
                Thread.onSpinWait();
              }
              assertThatExceptionOfType(EngineClosedException.class)
                  .isThrownBy(() -> model.call("Hello"));
              ending.over.await();
              assertThat(ending.error.get()).isNull();
              closing.join();
              assertThat(readiness).containsExactly(ReadinessState.REFUSING_TRAFFIC);
            });
  }

  @Test
  void keepsTheEngineWhenTheContextIsOnlyStoppedAndStartedAgain() {
    runner
        .withPropertyValues("lily.chat.temperature=0", "lily.chat.thinking=false")
        .run(
            context -> {
              LilyEngineLifecycle lifecycle = context.getBean(LilyEngineLifecycle.class);
              assertThat(lifecycle.isRunning()).isTrue();
              context.getSourceApplicationContext().stop();
              assertThat(lifecycle.isRunning()).isFalse();
              assertThat(lifecycle.isDraining()).isFalse();
              context.getSourceApplicationContext().start();
              assertThat(lifecycle.isRunning()).isTrue();
              assertThat(context.getBean(LilyChatModel.class).call("What is 60 - 16?"))
                  .isEqualTo("60 - 16 = 44");
            });
  }
}
