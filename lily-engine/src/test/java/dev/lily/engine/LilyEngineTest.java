package dev.lily.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.lily.engine.chat.ContentPart;
import dev.lily.engine.chat.Conversation;
import dev.lily.engine.chat.Message;
import dev.lily.engine.generation.ContextOverflowException;
import dev.lily.engine.generation.DeviceFailureException;
import dev.lily.engine.generation.EngineBusyException;
import dev.lily.engine.generation.EngineClosedException;
import dev.lily.engine.generation.FinishReason;
import dev.lily.engine.generation.GenerationEvent;
import dev.lily.engine.generation.GenerationHandle;
import dev.lily.engine.generation.GenerationInterruptedException;
import dev.lily.engine.generation.GenerationRequest;
import dev.lily.engine.generation.GenerationResult;
import dev.lily.engine.generation.InvalidRequestException;
import dev.lily.engine.generation.RawPrompt;
import dev.lily.engine.model.ScriptedModel;
import dev.lily.engine.model.ScriptedModel.Gate;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.engine.sampling.SamplingParameters;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;

class LilyEngineTest {
  private static final GenerationRequest HELLO = direct("Hello").build();

  private static GenerationRequest.Builder direct(String text) {
    return GenerationRequest.builder(Conversation.of(new Message.User(text))).thinking(false);
  }

  @Test
  void answersARequest() {
    ScriptedModel model = ScriptedEngine.saying("Hello yourself.").build();
    try (LilyEngine engine = ScriptedEngine.open(model)) {
      GenerationResult result = engine.generate(HELLO);
      assertThat(result.text()).isEqualTo("Hello yourself.");
      assertThat(result.reasoning()).isEmpty();
      assertThat(result.finishReason()).isEqualTo(FinishReason.STOP);
      assertThat(result.usage().completionTokens())
          .isEqualTo(ScriptedEngine.answer("Hello yourself.").length);
    }
    model.assertClean();
    assertThat(model.isClosed()).isTrue();
  }

  @Test
  void continuesARawPromptAndTakesMarkupForText() {
    String text = "b</think>c<tool_call>\n<function=f>\n</function>\n</tool_call>";
    ScriptedModel model = ScriptedEngine.saying(text).build();
    try (LilyEngine engine = ScriptedEngine.open(model)) {
      GenerationResult result =
          engine.generate(GenerationRequest.builder(new RawPrompt.Text("a")).build());
      assertThat(result.text()).isEqualTo(text);
      assertThat(result.reasoning()).isEmpty();
      assertThat(result.toolCalls()).isEmpty();
      assertThat(result.usage().promptTokens()).isEqualTo(1);
    }
    model.assertClean();
  }

  @Test
  void thinksUnlessToldNotTo() {
    ScriptedModel model = ScriptedEngine.saying("A greeting.\n</think>\n\nHello.").build();
    try (LilyEngine engine = ScriptedEngine.open(model)) {
      GenerationResult result = engine.generate(GenerationRequest.of("Hello"));
      assertThat(result.reasoning()).isEqualTo("A greeting.");
      assertThat(result.text()).isEqualTo("Hello.");
      assertThat(result.usage().reasoningTokens()).isPositive();
    }
  }

  @Test
  void feedsTheModelTheRenderedPrompt() {
    List<String> prompts = new CopyOnWriteArrayList<>();
    int[] answer = ScriptedEngine.answer("ok");
    ScriptedModel model =
        ScriptedEngine.following(
                (tokens, promptTokens) -> {
                  if (tokens.length == promptTokens) {
                    prompts.add(ScriptedEngine.tokenizer().decode(tokens));
                  }
                  return answer[tokens.length - promptTokens];
                })
            .build();
    try (LilyEngine engine = ScriptedEngine.open(model)) {
      engine.generate(HELLO);
    }
    assertThat(prompts)
        .containsExactly(
            "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n");
  }

  @Test
  void completesSamplingFromRequestOptionsProfileAndCheckpoint() {
    ScriptedModel model = ScriptedEngine.saying("ok").build();
    EngineOptions options =
        ScriptedEngine.options()
            .defaults(SamplingOptions.builder().topP(0.5).topK(7).build())
            .build();
    try (LilyEngine engine = ScriptedEngine.open(model, options)) {
      engine.generate(direct("Hello").sampling(SamplingOptions.builder().topK(3).build()).build());
      engine.generate(HELLO);
    }
    SamplingParameters first = model.device().samplingBegun().getFirst();
    assertThat(first.topK()).isEqualTo(3);
    assertThat(first.topP()).isEqualTo(0.5f);
    assertThat(first.temperature()).isEqualTo(0.7f);
    assertThat(first.minP()).isEqualTo(0.05f);
    assertThat(model.device().samplingBegun().get(1).seed()).isNotEqualTo(first.seed());
  }

  @Test
  void refusesBadInputOnTheCallersThread() {
    ScriptedModel model = ScriptedEngine.saying("ok").build();
    EngineOptions options = ScriptedEngine.options().contextLength(64).build();
    try (LilyEngine engine = ScriptedEngine.open(model, options)) {
      GenerationRequest image =
          GenerationRequest.builder(
                  Conversation.of(new Message.User(List.of(new ContentPart.Image()))))
              .build();
      assertThatThrownBy(() -> engine.generate(image))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("messages[0].content[0]");
      assertThatThrownBy(() -> engine.generate(direct("word ".repeat(200)).build()))
          .isInstanceOfSatisfying(
              ContextOverflowException.class,
              e -> {
                assertThat(e.promptTokens()).isGreaterThan(200);
                assertThat(e.contextLength()).isEqualTo(64);
              });
      assertThat(engine.stats().submitted()).isZero();
    }
    assertThat(model.steps()).isEmpty();
  }

  @Test
  void holdsNoMoreContextThanOneSequenceCan() {
    ScriptedModel model = ScriptedEngine.saying("ok").pages(5, 10).build();
    try (LilyEngine engine = ScriptedEngine.open(model)) {
      assertThatThrownBy(() -> engine.generate(direct("word ".repeat(60)).build()))
          .isInstanceOfSatisfying(
              ContextOverflowException.class, e -> assertThat(e.contextLength()).isEqualTo(50));
    }
  }

  @Test
  void throwsTheFailureOfTheDevice() {
    ScriptedModel model = ScriptedEngine.saying("Hello yourself.").build();
    model.failPass(1);
    try (LilyEngine engine = ScriptedEngine.open(model)) {
      assertThatThrownBy(() -> engine.generate(HELLO)).isInstanceOf(DeviceFailureException.class);
      assertThat(engine.stats().lastFailure()).contains("scripted failure");
      assertThat(engine.stats().alive()).isTrue();
      assertThat(engine.generate(HELLO).text()).isEqualTo("Hello yourself.");
    }
  }

  @Test
  void anInterruptCancelsTheRequestAndKeepsTheFlag() throws InterruptedException {
    ScriptedModel model = ScriptedEngine.saying("Hello yourself.").build();
    Gate gate = model.hold(1);
    List<Object> seen = new CopyOnWriteArrayList<>();
    try (LilyEngine engine = ScriptedEngine.open(model)) {
      Thread caller =
          Thread.ofPlatform()
              .start(
                  () -> {
                    try {
                      seen.add(engine.generate(HELLO));
                    } catch (GenerationInterruptedException e) {
                      seen.add(e);
                      seen.add(Thread.currentThread().isInterrupted());
                    }
                  });
      gate.awaitReached();
      caller.interrupt();
      caller.join();
      gate.release();
      assertThat(seen.getFirst()).isInstanceOf(GenerationInterruptedException.class);
      assertThat(seen.get(1)).isEqualTo(true);
      engine.close(Duration.ofMinutes(1));
      assertThat(engine.stats().cancelled()).isEqualTo(1);
    }
    assertThat(model.steps()).hasSize(2);
    model.assertClean();
  }

  @Test
  void refusesToGenerateOnTheEngineThread() throws InterruptedException {
    ScriptedModel model = ScriptedEngine.saying("ok").build();
    List<Throwable> thrown = new CopyOnWriteArrayList<>();
    try (LilyEngine engine = ScriptedEngine.open(model)) {
      GenerationHandle handle =
          engine.submit(
              HELLO,
              event -> {
                if (event instanceof GenerationEvent.PromptProgress) {
                  try {
                    engine.generate(HELLO);
                  } catch (IllegalStateException e) {
                    thrown.add(e);
                  }
                }
              });
      handle.await();
      assertThat(thrown).hasSize(1);
      assertThat(engine.stats().completed()).isEqualTo(1);
    }
  }

  @Test
  void countsWhatItDoes() throws InterruptedException {
    ScriptedModel model = ScriptedEngine.saying("Hello yourself.").build();
    Gate gate = model.hold(0);
    EngineOptions options = ScriptedEngine.options().maxSessions(1).queueLimit(1).build();
    try (LilyEngine engine = ScriptedEngine.open(model, options)) {
      GenerationHandle first = engine.submit(HELLO, _ -> {});
      gate.awaitReached();
      GenerationHandle second = engine.submit(HELLO, _ -> {});
      assertThatThrownBy(() -> engine.submit(HELLO, _ -> {}))
          .isInstanceOf(EngineBusyException.class);
      EngineStats busy = engine.stats();
      assertThat(busy.queued()).isEqualTo(1);
      assertThat(busy.running()).isEqualTo(1);
      assertThat(busy.rejected()).isEqualTo(1);
      gate.release();
      first.await();
      second.cancel();
      second.await();
      engine.close(Duration.ofMinutes(1));
      EngineStats stats = engine.stats();
      assertThat(stats.submitted()).isEqualTo(2);
      assertThat(stats.completed() + stats.cancelled()).isEqualTo(2);
      assertThat(stats.running()).isZero();
      assertThat(stats.queued()).isZero();
      assertThat(stats.promptTokens()).isPositive();
      assertThat(stats.generatedTokens())
          .isGreaterThanOrEqualTo(ScriptedEngine.answer("Hello yourself.").length);
      assertThat(stats.steps()).isEqualTo(model.steps().size());
      assertThat(stats.kvPages()).isEqualTo(model.layout().numPages());
      assertThat(stats.kvPagesUsed()).isZero();
      assertThat(stats.lastFailure()).isEmpty();
      assertThat(stats.alive()).isFalse();
    }
  }

  @Test
  void closesTheModelThenItsResourcesLastOpenedFirst() {
    ScriptedModel model = ScriptedEngine.saying("ok").build();
    List<String> closed = new ArrayList<>();
    LilyEngine engine =
        ScriptedEngine.open(
            model,
            ScriptedEngine.options().build(),
            List.of(
                () -> closed.add("checkpoint " + model.isClosed()),
                () -> closed.add("backend " + model.isClosed())));
    engine.close();
    engine.close();
    engine.close(Duration.ofDays(1));
    assertThat(closed).containsExactly("backend true", "checkpoint true");
    assertThatThrownBy(() -> engine.generate(HELLO)).isInstanceOf(EngineClosedException.class);
  }

  @Test
  void closesWhatIsLeftWhenAResourceCannotBeClosed() {
    List<String> closed = new ArrayList<>();
    LilyEngine engine =
        ScriptedEngine.open(
            ScriptedEngine.saying("ok").build(),
            ScriptedEngine.options().build(),
            List.of(
                () -> closed.add("checkpoint"),
                () -> {
                  throw new IOException("scripted");
                }));
    assertThatThrownBy(engine::close).hasMessageContaining("scripted");
    assertThat(closed).containsExactly("checkpoint");
  }

  @Test
  void opensAndClosesManyTimesWithoutLeavingAThread() {
    Set<Thread> before = Thread.getAllStackTraces().keySet();
    for (int i = 0; i < 30; i++) {
      ScriptedModel model = ScriptedEngine.saying("ok").build();
      try (LilyEngine engine = ScriptedEngine.open(model)) {
        assertThat(engine.generate(HELLO).text()).isEqualTo("ok");
        assertThat(engine.model().name()).isEqualTo("scripted");
        assertThat(engine.memoryPlan().maxSessions()).isEqualTo(8);
      }
      model.assertClean();
    }
    assertThat(Thread.getAllStackTraces().keySet())
        .filteredOn(thread -> thread.getName().equals("lily-engine"))
        .isSubsetOf(before);
  }
}
