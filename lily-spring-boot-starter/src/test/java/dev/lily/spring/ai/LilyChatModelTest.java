package dev.lily.spring.ai;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import dev.lily.engine.EngineOptions;
import dev.lily.engine.LilyEngine;
import dev.lily.engine.generation.ContextOverflowException;
import dev.lily.engine.generation.DeadlineExceededException;
import dev.lily.engine.generation.GenerationInterruptedException;
import dev.lily.engine.generation.InvalidRequestException;
import dev.lily.engine.generation.Usage;
import dev.lily.spring.Nano;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.ai.chat.messages.AssistantMessage;
import org.springframework.ai.chat.messages.SystemMessage;
import org.springframework.ai.chat.messages.UserMessage;
import org.springframework.ai.chat.model.ChatResponse;
import org.springframework.ai.chat.model.MessageAggregator;
import org.springframework.ai.chat.prompt.ChatOptions;
import org.springframework.ai.chat.prompt.Prompt;
import org.springframework.ai.content.Media;
import org.springframework.ai.tool.ToolCallback;
import org.springframework.core.io.ByteArrayResource;
import org.springframework.util.MimeTypeUtils;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;
import reactor.test.StepVerifier;

@Timeout(300)
class LilyChatModelTest {

  private static final LilyEngine ENGINE = Nano.engine();

  private static final ToolCallback WEATHER =
      Tools.tool(
          "get_weather",
          "Get the weather in a given city.",
          """
          {"type":"object","properties":{"city":{"type":"string","description":"The city"}},
           "required":["city"]}""");

  private final LilyChatModel model = LilyChatModel.builder(ENGINE).build();

  private static LilyChatOptions.Builder greedy() {
    return LilyChatOptions.builder().temperature(0.0).thinking(false);
  }

  private static Prompt sum() {
    return new Prompt("What is 60 - 16?", greedy().build());
  }

  private static Prompt thoughtfulSum() {
    return new Prompt("What is 477 - 223?", greedy().thinking(true).build());
  }

  private static Prompt weather() {
    return new Prompt(
        List.of(
            new SystemMessage("You are a helpful assistant with tools."),
            new UserMessage("What is the weather in Rome and Cairo?")),
        greedy().thinking(true).toolCallbacks(WEATHER).build());
  }

  private static Prompt story(int maxTokens) {
    return new Prompt(
        "Write a short story. The hero is a rabbit named Karin. Make it long.",
        greedy().maxTokens(maxTokens).build());
  }

  private static Prompt endlessStory() {
    return new Prompt("Tell me a story.", greedy().minTokens(1500).maxTokens(1500).build());
  }

  private static AssistantMessage message(ChatResponse response) {
    return response.getResult().getOutput();
  }

  private static String finishReason(ChatResponse response) {
    return response.getResult().getMetadata().getFinishReason();
  }

  private static void awaitIdle() {
    await().atMost(Duration.ofSeconds(60)).until(() -> ENGINE.stats().running() == 0);
  }

  // Answers.

  @Test
  void answersACall() {
    ChatResponse response = model.call(sum());
    assertThat(message(response).getText()).isEqualTo("60 - 16 = 44");
    assertThat(finishReason(response)).isEqualTo("stop");
    assertThat(response.getMetadata().getModel()).isEqualTo(Nano.NAME);
    assertThat(response.getMetadata().getId()).startsWith("lily-");
    assertThat(response.getMetadata().getUsage().getPromptTokens()).isPositive();
    assertThat(response.getMetadata().getUsage().getCompletionTokens()).isPositive();
  }

  @Test
  void keepsReasoningInTheMetadata() {
    ChatResponse response = model.call(thoughtfulSum());
    assertThat(message(response).getText()).isEqualTo("477 - 223 = 254");
    assertThat(message(response).getMetadata().get("reasoningContent"))
        .asString()
        .startsWith("477 - 223. Ones: 7 - 3 = 4.");
    Usage usage = (Usage) response.getMetadata().getUsage().getNativeUsage();
    assertThat(usage.reasoningTokens()).isPositive().isLessThan(usage.completionTokens());
  }

  @Test
  void returnsToolCallsWithoutRunningThem() {
    ChatResponse response = model.call(weather());
    assertThat(finishReason(response)).isEqualTo("tool_calls");
    assertThat(message(response).getToolCalls())
        .extracting(AssistantMessage.ToolCall::name, AssistantMessage.ToolCall::arguments)
        .containsExactly(
            org.assertj.core.groups.Tuple.tuple("get_weather", "{\"city\":\"Rome\"}"),
            org.assertj.core.groups.Tuple.tuple("get_weather", "{\"city\":\"Cairo\"}"));
    assertThat(message(response).getToolCalls())
        .extracting(AssistantMessage.ToolCall::id)
        .doesNotHaveDuplicates()
        .doesNotContain("");
  }

  static List<Prompt> prompts() {
    return List.of(sum(), thoughtfulSum(), weather(), story(400), story(20));
  }

  @ParameterizedTest
  @MethodSource("prompts")
  void aggregatesAStreamToTheSameAsACall(Prompt prompt) {
    ChatResponse called = model.call(prompt);
    AtomicReference<ChatResponse> aggregated = new AtomicReference<>();
    Long chunks =
        new MessageAggregator().aggregate(model.stream(prompt), aggregated::set).count().block();
    ChatResponse streamed = aggregated.get();
    assertThat(chunks).isPositive();
    assertThat(message(streamed).getText()).isEqualTo(message(called).getText());
    assertThat(message(streamed).getMetadata()).isEqualTo(message(called).getMetadata());
    assertThat(message(streamed).getToolCalls())
        .usingRecursiveFieldByFieldElementComparatorIgnoringFields("id")
        .isEqualTo(message(called).getToolCalls());
    assertThat(finishReason(streamed)).isEqualTo(finishReason(called));
    assertThat(streamed.getMetadata().getModel()).isEqualTo(called.getMetadata().getModel());
    assertThat(streamed.getMetadata().getUsage().getPromptTokens())
        .isEqualTo(called.getMetadata().getUsage().getPromptTokens());
    assertThat(streamed.getMetadata().getUsage().getCompletionTokens())
        .isEqualTo(called.getMetadata().getUsage().getCompletionTokens());
    assertThat(streamed.getMetadata().getUsage().getTotalTokens())
        .isEqualTo(called.getMetadata().getUsage().getTotalTokens());
  }

  @Test
  void streamsTextInManyPiecesUnderOneId() {
    List<ChatResponse> chunks = model.stream(story(60)).collectList().block();
    assertThat(chunks).hasSizeGreaterThan(20);
    assertThat(chunks)
        .allSatisfy(
            chunk -> {
              assertThat(chunk.getMetadata().getId()).startsWith("lily-");
              assertThat(chunk.getMetadata().getModel()).isEqualTo(Nano.NAME);
            });
    assertThat(chunks)
        .extracting(chunk -> chunk.getMetadata().getId())
        .containsOnly(chunks.getFirst().getMetadata().getId());
    assertThat(finishReason(chunks.getLast())).isEqualTo("length");
  }

  @Test
  void submitsAStreamWhenItIsSubscribedToAndAgainForEachSubscriber() {
    awaitIdle();
    long before = ENGINE.stats().submitted();
    var stream = model.stream(sum());
    assertThat(ENGINE.stats().submitted()).isEqualTo(before);
    String first =
        String.valueOf(stream.map(c -> message(c).getText()).reduce(String::concat).block());
    String again =
        String.valueOf(stream.map(c -> message(c).getText()).reduce(String::concat).block());
    assertThat(first).isEqualTo("60 - 16 = 44").isEqualTo(again);
    assertThat(ENGINE.stats().submitted()).isEqualTo(before + 2);
  }

  @Test
  void readsToolResultsAndEarlierReasoningFromTheHistory() {
    ChatResponse calling = model.call(weather());
    List<AssistantMessage.ToolCall> calls = message(calling).getToolCalls();
    List<org.springframework.ai.chat.messages.Message> history =
        new java.util.ArrayList<>(weather().getInstructions());
    history.add(message(calling));
    history.add(
        org.springframework.ai.chat.messages.ToolResponseMessage.builder()
            .responses(
                List.of(
                    new org.springframework.ai.chat.messages.ToolResponseMessage.ToolResponse(
                        calls.get(1).id(), "get_weather", "clear, 33 degrees"),
                    new org.springframework.ai.chat.messages.ToolResponseMessage.ToolResponse(
                        calls.get(0).id(), "get_weather", "rainy, 12 degrees")))
            .build());
    ChatResponse answer = model.call(new Prompt(history, weather().getOptions()));
    assertThat(message(answer).getText())
        .isEqualTo("It is rainy and 12 degrees in Rome. It is clear and 33 degrees in Cairo.");
  }

  // Options.

  @Test
  void takesPortableOptionsOverItsDefaults() {
    LilyChatModel configured = LilyChatModel.builder(ENGINE).options(greedy().build()).build();
    ChatResponse response =
        configured.call(new Prompt("What is 60 - 16?", ChatOptions.builder().maxTokens(2).build()));
    assertThat(finishReason(response)).isEqualTo("length");
    assertThat(response.getMetadata().getUsage().getCompletionTokens()).isEqualTo(2);
    assertThat(message(response).getMetadata()).doesNotContainKey("reasoningContent");
  }

  @Test
  void takesItsDefaultsWhereThePromptHasNoOptions() {
    LilyChatModel configured = LilyChatModel.builder(ENGINE).options(greedy().build()).build();
    assertThat(configured.call("What is 60 - 16?")).isEqualTo("60 - 16 = 44");
    assertThat(configured.getOptions().getModel()).isEqualTo(Nano.NAME);
  }

  @Test
  void endsAfterOneTokenIfOneIsAsked() {
    ChatResponse response = model.call(story(1));
    assertThat(finishReason(response)).isEqualTo("length");
    assertThat(response.getMetadata().getUsage().getCompletionTokens()).isEqualTo(1);
  }

  @Test
  void reportsAsManyLogprobsAsTokens() {
    Prompt prompt = new Prompt("What is 60 - 16?", greedy().logprobs(true).topLogprobs(2).build());
    ChatResponse called = model.call(prompt);
    ChatResponse last = model.stream(prompt).blockLast();
    for (ChatResponse response : List.of(called, last)) {
      List<?> logprobs = response.getResult().getMetadata().get("logprobs");
      assertThat(logprobs).hasSize(response.getMetadata().getUsage().getCompletionTokens());
    }
  }

  @Test
  void repeatsAnswersWithASeedAlsoUnderLoadAndVariesWithout() {
    String question = "Tell me a story.";
    Prompt seeded =
        new Prompt(
            question,
            LilyChatOptions.builder()
                .temperature(1.0)
                .seed(42L)
                .thinking(false)
                .maxTokens(30)
                .build());
    String alone = message(model.call(seeded)).getText();
    List<CompletableFuture<String>> together =
        IntStream.range(0, 4)
            .mapToObj(
                i -> CompletableFuture.supplyAsync(() -> message(model.call(seeded)).getText()))
            .toList();
    assertThat(together).allSatisfy(answer -> assertThat(answer.join()).isEqualTo(alone));

    Prompt free =
        new Prompt(
            question,
            LilyChatOptions.builder().temperature(1.5).thinking(false).maxTokens(30).build());
    Set<String> answers = ConcurrentHashMap.newKeySet();
    for (int i = 0; i < 8; i++) {
      answers.add(String.valueOf(message(model.call(free)).getText()));
    }
    assertThat(answers).hasSizeGreaterThan(1);
  }

  @Test
  void takesTopKOneAndTemperatureZeroAsGreedy() {
    Prompt topOne =
        new Prompt(
            "Tell me a story.",
            greedy().temperature(1.0).topK(1).presencePenalty(0.0).maxTokens(30).build());
    Prompt zero = new Prompt("Tell me a story.", greedy().topP(0.1).topK(40).maxTokens(30).build());
    assertThat(message(model.call(topOne)).getText())
        .isEqualTo(message(model.call(zero)).getText());
  }

  // Refusals.

  static List<Prompt> refused() {
    return List.of(
        new Prompt("x", greedy().model("another").build()),
        new Prompt("x", greedy().outputSchema("{\"uniqueItems\":true}").build()),
        new Prompt("x", greedy().maxTokens(0).build()),
        new Prompt("x", greedy().temperature(Double.NaN).build()),
        new Prompt(
            UserMessage.builder()
                .text("x")
                .media(new Media(MimeTypeUtils.IMAGE_PNG, new ByteArrayResource(new byte[] {1})))
                .build()));
  }

  @ParameterizedTest
  @MethodSource("refused")
  void refusesInCallAndStreamAlike(Prompt prompt) {
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> model.call(prompt))
        .satisfies(
            refusal ->
                StepVerifier.create(model.stream(prompt))
                    .verifyErrorSatisfies(
                        e ->
                            assertThat(e)
                                .isInstanceOf(InvalidRequestException.class)
                                .hasMessage(refusal.getMessage())));
  }

  @Test
  void refusesAPromptLongerThanTheWindowWithBothNumbers() {
    try (LilyEngine small =
        LilyEngine.open(
            EngineOptions.builder(Nano.DIRECTORY).contextLength(64).maxSessions(1).build())) {
      LilyChatModel narrow = LilyChatModel.builder(small).build();
      Prompt tooLong = new Prompt("password ".repeat(300), greedy().build());
      assertThatExceptionOfType(ContextOverflowException.class)
          .isThrownBy(() -> narrow.call(tooLong))
          .satisfies(
              e -> {
                assertThat(e.contextLength()).isEqualTo(64);
                assertThat(e.promptTokens()).isGreaterThan(300);
              });
      StepVerifier.create(narrow.stream(tooLong)).verifyError(ContextOverflowException.class);

      ChatResponse cut = narrow.call(new Prompt("Tell me a story.", greedy().build()));
      assertThat(finishReason(cut)).isEqualTo("length");
      assertThat(cut.getMetadata().getUsage().getTotalTokens()).isLessThanOrEqualTo(64);
    }
  }

  @Test
  void failsAfterItsTimeout() {
    Prompt slow =
        new Prompt(
            "Tell me a story.",
            greedy().minTokens(1500).maxTokens(1500).timeout(Duration.ofMillis(50)).build());
    assertThatExceptionOfType(DeadlineExceededException.class).isThrownBy(() -> model.call(slow));
    StepVerifier.create(model.stream(slow))
        .thenConsumeWhile(chunk -> true)
        .verifyError(DeadlineExceededException.class);
  }

  @Test
  void failsAtOnceOnAThreadThatMustNotBlock() {
    StepVerifier.create(
            Mono.fromCallable(() -> model.call(sum())).subscribeOn(Schedulers.parallel()))
        .verifyErrorSatisfies(
            e ->
                assertThat(e)
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("must not block. Use stream()"));
  }

  // Leaving early.

  @Test
  void freesTheEngineWhenASubscriberLeaves() {
    awaitIdle();
    long cancelled = ENGINE.stats().cancelled();
    StepVerifier.create(model.stream(endlessStory()).take(5)).expectNextCount(5).verifyComplete();
    awaitIdle();
    assertThat(ENGINE.stats().cancelled()).isEqualTo(cancelled + 1);
    assertThat(model.call(sum()).getResult().getOutput().getText()).isEqualTo("60 - 16 = 44");
  }

  @Test
  void cancelsACallWhoseThreadIsInterrupted() throws InterruptedException {
    awaitIdle();
    AtomicReference<Throwable> thrown = new AtomicReference<>();
    Thread caller =
        Thread.ofVirtual()
            .start(
                () -> {
                  try {
                    model.call(endlessStory());
                  } catch (RuntimeException e) {
                    thrown.set(e);
                  }
                });
    await().until(() -> ENGINE.stats().running() == 1);
    caller.interrupt();
    caller.join();
    assertThat(thrown.get()).isInstanceOf(GenerationInterruptedException.class);
    awaitIdle();
  }

  @Test
  void doesNotLetAStalledSubscriberHoldUpOthers() {
    awaitIdle();
    StepVerifier.create(model.stream(endlessStory()), 3)
        .expectNextCount(3)
        .then(
            () -> {
              assertThat(message(model.call(sum())).getText()).isEqualTo("60 - 16 = 44");
              assertThat(ENGINE.stats().running()).isEqualTo(1);
            })
        .thenCancel()
        .verify();
    awaitIdle();
  }

  @Test
  void tellsTheRecorderUsageAndTimingsOfCallsAndStreams() {
    Map<Usage, Boolean> recorded = new ConcurrentHashMap<>();
    LilyChatModel recording =
        LilyChatModel.builder(ENGINE)
            .recorder((usage, timings) -> recorded.put(usage, timings.firstToken().isPositive()))
            .build();
    recording.call(sum());
    recording.stream(thoughtfulSum()).blockLast();
    assertThat(recorded).hasSize(2).containsValues(true).doesNotContainValue(false);
  }
}
