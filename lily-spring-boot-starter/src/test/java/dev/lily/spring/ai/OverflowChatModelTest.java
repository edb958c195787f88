package dev.lily.spring.ai;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.lily.engine.generation.ContextOverflowException;
import dev.lily.engine.generation.EngineBusyException;
import dev.lily.engine.generation.GenerationException;
import dev.lily.engine.generation.InvalidRequestException;
import dev.lily.spring.OverflowReason;
import dev.lily.spring.ScriptedChatModel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.ai.chat.model.ChatResponse;
import org.springframework.ai.chat.prompt.ChatOptions;
import org.springframework.ai.chat.prompt.Prompt;
import reactor.core.publisher.Flux;
import reactor.core.scheduler.Schedulers;
import reactor.test.StepVerifier;

@Timeout(60)
class OverflowChatModelTest {
  private static final EngineBusyException BUSY =
      new EngineBusyException(4, 4, Duration.ofSeconds(1));
  private static final ContextOverflowException TOO_LONG = new ContextOverflowException(300, 256);
  private static final LilyChatOptions DEFAULTS = LilyChatOptions.builder().model("nano").build();

  private final List<String> recorded = new ArrayList<>();
  private final ScriptedChatModel cluster = ScriptedChatModel.saying("far ", "away");

  /** What the engine refuses, comes in a stream from another thread. */
  private static ScriptedChatModel refusing(Throwable refusal) {
    return ScriptedChatModel.of(
        DEFAULTS, Flux.<ChatResponse>error(refusal).subscribeOn(Schedulers.boundedElastic()));
  }

  private static ScriptedChatModel answering(String text) {
    return ScriptedChatModel.of(
        DEFAULTS, Flux.just(ScriptedChatModel.text(text), ScriptedChatModel.end("stop", 1, 1)));
  }

  private Overflow.Builder overflow() {
    return Overflow.builder(DEFAULTS, cluster, "cluster")
        .recorder((reason, model) -> recorded.add(reason.tag() + " " + model));
  }

  private OverflowChatModel over(ScriptedChatModel local) {
    return new OverflowChatModel(local, overflow().build());
  }

  private static Prompt localOnly() {
    return new Prompt("hi", LilyChatOptions.builder().localOnly(true).build());
  }

  private static String text(ChatResponse response) {
    return response.getResult().getOutput().getText();
  }

  private static void assertAnsweredBy(ChatResponse response, String name, String reason) {
    assertThat(response.getMetadata().<Object>get(Overflow.ANSWERED_BY)).isEqualTo(name);
    assertThat(response.getMetadata().<Object>get(Overflow.REASON)).isEqualTo(reason);
  }

  static Stream<GenerationException> refusals() {
    return Stream.of(BUSY, TOO_LONG);
  }

  private static String tag(GenerationException refusal) {
    return refusal == BUSY ? "queue-full" : "prompt-too-long";
  }

  @Test
  void answersHereWhileItCan() {
    ChatResponse response = over(answering("here")).call(new Prompt("hi"));
    assertThat(text(response)).isEqualTo("here");
    assertAnsweredBy(response, OverflowChatModel.LOCAL, null);
    assertThat(over(answering("here")).stream(new Prompt("hi")).collectList().block())
        .hasSize(2)
        .allSatisfy(chunk -> assertAnsweredBy(chunk, OverflowChatModel.LOCAL, null))
        .last()
        .satisfies(
            end -> {
              assertThat(end.getMetadata().getUsage().getTotalTokens()).isEqualTo(2);
              assertThat(end.getResult().getMetadata().getFinishReason()).isEqualTo("stop");
            });
    assertThat(cluster.prompts).isEmpty();
    assertThat(recorded).isEmpty();
  }

  @ParameterizedTest
  @MethodSource("refusals")
  void sendsAwayWhatIsRefused(GenerationException refusal) {
    ChatResponse response = over(refusing(refusal)).call(new Prompt("hi"));
    assertThat(text(response)).isEqualTo("far away");
    assertThat(response.getMetadata().getModel()).isEqualTo(ScriptedChatModel.MODEL);
    assertAnsweredBy(response, "cluster", tag(refusal));

    List<ChatResponse> chunks =
        over(refusing(refusal)).stream(new Prompt("hi")).collectList().block();
    assertThat(chunks).extracting(OverflowChatModelTest::text).containsExactly("far ", "away", "");
    assertThat(chunks).allSatisfy(chunk -> assertAnsweredBy(chunk, "cluster", tag(refusal)));
    assertThat(chunks.getLast().getMetadata().getUsage().getTotalTokens()).isEqualTo(7);
    assertThat(recorded).containsExactly(tag(refusal) + " cluster", tag(refusal) + " cluster");
  }

  @ParameterizedTest
  @MethodSource("refusals")
  void refusesWhatIsLocalOnlyAsIfThereWereNoOverflow(GenerationException refusal) {
    assertThatThrownBy(() -> over(refusing(refusal)).call(localOnly())).isSameAs(refusal);
    StepVerifier.create(over(refusing(refusal)).stream(localOnly()))
        .verifyErrorSatisfies(failure -> assertThat(failure).isSameAs(refusal));
    assertThat(cluster.prompts).isEmpty();
  }

  @ParameterizedTest
  @MethodSource("refusals")
  void refusesForReasonsThatAreSwitchedOff(GenerationException refusal) {
    OverflowReason other =
        refusal == BUSY ? OverflowReason.PROMPT_TOO_LONG : OverflowReason.QUEUE_FULL;
    OverflowChatModel model =
        new OverflowChatModel(refusing(refusal), overflow().reasons(Set.of(other)).build());
    assertThatThrownBy(() -> model.call(new Prompt("hi"))).isSameAs(refusal);
    StepVerifier.create(model.stream(new Prompt("hi")))
        .verifyErrorSatisfies(failure -> assertThat(failure).isSameAs(refusal));
    assertThat(cluster.prompts).isEmpty();
  }

  @Test
  void refusesWhateverElseIsWrong() {
    InvalidRequestException wrong = new InvalidRequestException("topK", "topK is -7");
    assertThatThrownBy(() -> over(refusing(wrong)).call(new Prompt("hi"))).isSameAs(wrong);
    StepVerifier.create(over(refusing(wrong)).stream(new Prompt("hi")))
        .verifyErrorSatisfies(failure -> assertThat(failure).isSameAs(wrong));
    assertThat(cluster.prompts).isEmpty();
  }

  @Test
  void refusesWhatOnlyLilyCanDo() {
    Prompt seeded = new Prompt("hi", LilyChatOptions.builder().seed(7L).build());
    assertThatThrownBy(() -> over(refusing(BUSY)).call(seeded)).isSameAs(BUSY);
    StepVerifier.create(over(refusing(BUSY)).stream(seeded))
        .verifyErrorSatisfies(failure -> assertThat(failure).isSameAs(BUSY));
    assertThat(cluster.prompts).isEmpty();
  }

  @Test
  void neverLeavesAfterTheFirstChunk() {
    ScriptedChatModel local =
        ScriptedChatModel.of(
            DEFAULTS, Flux.concat(Flux.just(ScriptedChatModel.text("one")), Flux.error(BUSY)));
    StepVerifier.create(over(local).stream(new Prompt("hi")).map(OverflowChatModelTest::text))
        .expectNext("one")
        .verifyErrorSatisfies(failure -> assertThat(failure).isSameAs(BUSY));
    assertThat(cluster.prompts).isEmpty();
  }

  @Test
  void showsTheFailureOfTheOtherModel() {
    IllegalStateException broken = new IllegalStateException("connection reset");
    ScriptedChatModel failing = ScriptedChatModel.streaming(Flux.error(broken));
    OverflowChatModel model =
        new OverflowChatModel(
            refusing(BUSY), Overflow.builder(DEFAULTS, failing, "cluster").build());
    assertThatThrownBy(() -> model.call(new Prompt("hi"))).isSameAs(broken);
    StepVerifier.create(model.stream(new Prompt("hi")))
        .verifyErrorSatisfies(failure -> assertThat(failure).isSameAs(broken));
  }

  @Test
  void cancelsTheOtherModelsStream() {
    ScriptedChatModel endless =
        ScriptedChatModel.streaming(
            Flux.concat(Flux.just(ScriptedChatModel.text("one")), Flux.never()));
    OverflowChatModel model =
        new OverflowChatModel(
            refusing(BUSY), Overflow.builder(DEFAULTS, endless, "cluster").build());
    StepVerifier.create(model.stream(new Prompt("hi")).map(OverflowChatModelTest::text))
        .expectNext("one")
        .thenCancel()
        .verify();
    assertThat(endless.cancellations).hasValue(1);
  }

  @Test
  void doesNothingBeforeSubscriptionAndAllAgainAtTheNext() {
    Flux<ChatResponse> stream = over(refusing(BUSY)).stream(new Prompt("hi"));
    assertThat(recorded).isEmpty();
    stream.blockLast();
    stream.blockLast();
    assertThat(recorded).hasSize(2);
    assertThat(cluster.prompts).hasSize(2);
  }

  @Test
  void sendsAwayWhatAPolicySaysWithoutAskingTheEngine() {
    ScriptedChatModel local = answering("here");
    OverflowChatModel model =
        new OverflowChatModel(
            local,
            overflow().policies(List.of(prompt -> prompt.getContents().contains("big"))).build());
    assertAnsweredBy(model.call(new Prompt("a big one")), "cluster", "policy");
    assertAnsweredBy(model.stream(new Prompt("a big one")).blockLast(), "cluster", "policy");
    assertThat(local.prompts).isEmpty();
    assertAnsweredBy(model.call(new Prompt("a small one")), OverflowChatModel.LOCAL, null);
    assertAnsweredBy(
        model.call(new Prompt("a big one", LilyChatOptions.builder().localOnly(true).build())),
        OverflowChatModel.LOCAL,
        null);
    assertThat(recorded).containsExactly("policy cluster", "policy cluster");
  }

  @Test
  void keepsEverythingHereIfTheApplicationSaysSoAndThePromptDoesNot() {
    LilyChatOptions closed = DEFAULTS.mutate().localOnly(true).build();
    OverflowChatModel model =
        new OverflowChatModel(refusing(BUSY), Overflow.builder(closed, cluster, "cluster").build());
    for (ChatOptions options :
        new ChatOptions[] {
          null,
          LilyChatOptions.builder().temperature(0.5).build(),
          ChatOptions.builder().temperature(0.5).build()
        }) {
      assertThatThrownBy(() -> model.call(new Prompt("hi", options))).isSameAs(BUSY);
    }
    Prompt open = new Prompt("hi", LilyChatOptions.builder().localOnly(false).build());
    assertAnsweredBy(model.call(open), "cluster", "queue-full");
  }
}
