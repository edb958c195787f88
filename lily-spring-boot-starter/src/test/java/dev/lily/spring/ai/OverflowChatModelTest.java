package dev.lily.spring.ai;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.lily.engine.EngineOptions;
import dev.lily.engine.LilyEngine;
import dev.lily.engine.generation.ContextOverflowException;
import dev.lily.engine.generation.EngineBusyException;
import dev.lily.spring.Nano;
import dev.lily.spring.OverflowReason;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.ai.chat.client.ChatClient;
import org.springframework.ai.chat.model.ChatResponse;
import org.springframework.ai.chat.prompt.Prompt;
import reactor.core.Disposable;

/** Two Lily instances: a small one that is soon full, and one that takes what leaves. */
@Timeout(120)
class OverflowChatModelTest {
  private static final String QUESTION = "What is 60 - 16?";
  private static final String ANSWER = "60 - 16 = 44";
  private static final String OTHER = "cluster";

  private static LilyEngine small;

  private final List<String> recorded = new CopyOnWriteArrayList<>();
  private final List<Disposable> running = new ArrayList<>();
  private final LilyChatModel local = model(small);
  private final LilyChatModel other = model(Nano.engine());

  @BeforeAll
  static void open() {
    small =
        LilyEngine.open(
            EngineOptions.builder(Nano.DIRECTORY)
                .maxSessions(1)
                .queueLimit(1)
                .contextLength(256)
                .build());
  }

  @AfterAll
  static void close() {
    small.close();
  }

  @AfterEach
  void makeRoom() {
    running.forEach(Disposable::dispose);
    await().until(() -> small.stats().running() == 0 && small.stats().queued() == 0);
  }

  private static LilyChatModel model(LilyEngine engine) {
    return LilyChatModel.builder(engine).options(options().build()).build();
  }

  private static LilyChatOptions.Builder options() {
    return LilyChatOptions.builder().temperature(0.0).thinking(false);
  }

  private OverflowChatModel overflow(Set<OverflowReason> reasons, OverflowPolicy... policies) {
    return new OverflowChatModel(
        local,
        other,
        OTHER,
        reasons,
        List.of(policies),
        (reason, model) -> recorded.add(reason.tag() + " " + model));
  }

  private OverflowChatModel overflow(OverflowPolicy... policies) {
    return overflow(EnumSet.allOf(OverflowReason.class), policies);
  }

  private static Prompt prompt(String question, boolean localOnly) {
    return new Prompt(question, options().localOnly(localOnly).build());
  }

  /** One answer that goes on, and one request that waits. */
  private void fillTheQueue() {
    Prompt endless = new Prompt("Tell me a story.", options().minTokens(200).build());
    for (int i = 0; i < 2; i++) {
      // Takes nothing after the first chunk, so that it stays.
      running.add(local.stream(endless).limitRate(1).subscribe(chunk -> {}, failure -> {}));
      int submitted = i;
      await()
          .until(
              () ->
                  submitted == 0
                      ? small.stats().running() == 1
                      : small.stats().queued() == 1 || small.stats().running() == 0);
    }
  }

  private static String text(ChatResponse response) {
    return response.getResult().getOutput().getText();
  }

  private static void assertAnsweredBy(ChatResponse response, String name, String reason) {
    assertThat((Object) response.getMetadata().get(OverflowChatModel.ANSWERED_BY)).isEqualTo(name);
    assertThat((Object) response.getMetadata().get(OverflowChatModel.REASON)).isEqualTo(reason);
  }

  @Test
  void answersItselfWhileItCan() {
    long before = Nano.engine().stats().submitted();
    ChatResponse response = overflow().call(new Prompt(QUESTION));
    assertThat(text(response)).isEqualTo(ANSWER);
    assertAnsweredBy(response, OverflowChatModel.LOCAL, null);
    assertThat(response.getMetadata().getUsage().getPromptTokens()).isPositive();
    List<ChatResponse> chunks = overflow().stream(new Prompt(QUESTION)).collectList().block();
    assertThat(chunks)
        .hasSizeGreaterThan(1)
        .allSatisfy(chunk -> assertAnsweredBy(chunk, OverflowChatModel.LOCAL, null));
    assertThat(Nano.engine().stats().submitted()).isEqualTo(before);
    assertThat(recorded).isEmpty();
  }

  @Test
  void sendsAwayWhatFindsTheQueueFullUnlessItIsLocalOnly() {
    fillTheQueue();
    long before = Nano.engine().stats().submitted();
    ChatResponse response = overflow().call(prompt(QUESTION, false));
    assertThat(text(response)).isEqualTo(ANSWER);
    assertAnsweredBy(response, OTHER, "busy");
    String streamed =
        String.join(
            "",
            overflow().stream(prompt(QUESTION, false))
                .doOnNext(chunk -> assertAnsweredBy(chunk, OTHER, "busy"))
                .mapNotNull(OverflowChatModelTest::text)
                .collectList()
                .block());
    assertThat(streamed).isEqualTo(ANSWER);
    assertThat(recorded).containsExactly("busy cluster", "busy cluster");
    assertThat(Nano.engine().stats().submitted()).isEqualTo(before + 2);

    assertThatThrownBy(() -> overflow().call(prompt(QUESTION, true)))
        .isInstanceOf(EngineBusyException.class);
    assertThatThrownBy(() -> overflow().stream(prompt(QUESTION, true)).blockLast())
        .isInstanceOf(EngineBusyException.class);
    assertThatThrownBy(
            () -> overflow(EnumSet.of(OverflowReason.CONTEXT)).call(prompt(QUESTION, false)))
        .isInstanceOf(EngineBusyException.class);
    assertThat(Nano.engine().stats().submitted()).isEqualTo(before + 2);
    assertThat(recorded).hasSize(2);
  }

  @Test
  void sendsAwayWhatDoesNotFitTheContextUnlessItIsLocalOnly() {
    String question = "a ".repeat(400) + QUESTION;
    ChatResponse response = overflow().call(prompt(question, false));
    assertAnsweredBy(response, OTHER, "context");
    assertAnsweredBy(overflow().stream(prompt(question, false)).blockLast(), OTHER, "context");
    assertThat(recorded).containsExactly("context cluster", "context cluster");
    assertThatThrownBy(() -> overflow().call(prompt(question, true)))
        .isInstanceOf(ContextOverflowException.class);
    assertThatThrownBy(() -> overflow().stream(prompt(question, true)).blockLast())
        .isInstanceOf(ContextOverflowException.class);
    assertThatThrownBy(
            () -> overflow(EnumSet.of(OverflowReason.BUSY)).call(prompt(question, false)))
        .isInstanceOf(ContextOverflowException.class);
  }

  @Test
  void sendsAwayWhatAPolicySaysUnlessItIsLocalOnly() {
    OverflowPolicy policy = prompt -> prompt.getContents().contains("60");
    assertAnsweredBy(overflow(policy).call(prompt(QUESTION, false)), OTHER, "policy");
    assertAnsweredBy(overflow(policy).stream(prompt(QUESTION, false)).blockLast(), OTHER, "policy");
    assertAnsweredBy(
        overflow(policy).call(prompt("What is 1 + 1?", false)), OverflowChatModel.LOCAL, null);
    assertAnsweredBy(overflow(policy).call(prompt(QUESTION, true)), OverflowChatModel.LOCAL, null);
    assertThat(recorded).containsExactly("policy cluster", "policy cluster");
  }

  @Test
  void takesToolsAlong() {
    LilyChatClientTest.CityTools tools = new LilyChatClientTest.CityTools();
    String answer =
        ChatClient.create(overflow(prompt -> true))
            .prompt()
            .system("You are a helpful assistant with tools.")
            .user("What is the weather in Rome and Cairo?")
            .tools(tools)
            .call()
            .content();
    assertThat(answer).contains("Rome").contains("Cairo");
    assertThat(tools.asked).containsExactly("Rome", "Cairo");
  }

  @Test
  void keepsEverythingHereIfTheModelsOwnOptionsSaySo() {
    LilyChatModel closed =
        LilyChatModel.builder(small).options(options().localOnly(true).build()).build();
    OverflowChatModel model =
        new OverflowChatModel(
            closed,
            other,
            OTHER,
            EnumSet.allOf(OverflowReason.class),
            List.of(prompt -> true),
            (reason, name) -> recorded.add(name));
    assertAnsweredBy(model.call(new Prompt(QUESTION)), OverflowChatModel.LOCAL, null);
    assertThat(recorded).isEmpty();
  }
}
