package dev.lily.sample.clients;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.openai.client.OpenAIClient;
import com.openai.client.okhttp.OpenAIOkHttpClient;
import com.openai.core.http.StreamResponse;
import com.openai.errors.RateLimitException;
import com.openai.models.chat.completions.ChatCompletion;
import com.openai.models.chat.completions.ChatCompletionChunk;
import com.openai.models.chat.completions.ChatCompletionCreateParams;
import com.openai.models.responses.Response;
import com.openai.models.responses.ResponseCreateParams;
import dev.lily.engine.LilyEngine;
import dev.lily.engine.generation.ContextOverflowException;
import dev.lily.engine.generation.EngineBusyException;
import dev.lily.spring.ai.LilyChatModel;
import dev.lily.spring.ai.LilyChatOptions;
import dev.lily.spring.ai.Overflow;
import dev.lily.spring.ai.OverflowChatModel;
import dev.lily.spring.ai.OverflowOptions;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.reactivestreams.Subscription;
import org.springframework.ai.chat.client.ChatClient;
import org.springframework.ai.chat.model.ChatModel;
import org.springframework.ai.chat.model.ChatResponse;
import org.springframework.ai.chat.prompt.ChatOptions;
import org.springframework.ai.chat.prompt.Prompt;
import org.springframework.ai.openai.OpenAiChatModel;
import org.springframework.ai.openai.OpenAiChatOptions;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import reactor.core.publisher.BaseSubscriber;

/**
 * Two Lily instances: an application with a place for one request overflows, through Spring AI's
 * starter for OpenAI, to the sample application.
 */
@Timeout(120)
@ExtendWith(SampleServer.Provider.class)
class OverflowIT {

  @SpringBootConfiguration
  @EnableAutoConfiguration
  static class Application {
    @Bean
    MeterRegistry meterRegistry() {
      return new SimpleMeterRegistry();
    }

    // tag::options[]
    @Bean
    OverflowOptions overflowOptions(LilyChatModel lily, OpenAiChatModel cluster) {
      OverflowOptions portable = OverflowOptions.portable(lily.getOptions(), cluster);
      return asked -> {
        ChatOptions options = portable.of(asked.mutate().thinking(null).build());
        return options instanceof OpenAiChatOptions openAi && asked.getThinking() != null
            ? openAi.mutate().reasoningEffort(asked.getThinking() ? "medium" : "none").build()
            : options;
      };
    }
    // end::options[]
  }

  /** An answer of which nobody takes anything, so that it stays. */
  private static final class Occupant extends BaseSubscriber<ChatResponse> {
    @Override
    protected void hookOnSubscribe(Subscription subscription) {
      // Asks for nothing.
    }
  }

  private static ConfigurableApplicationContext context;

  private final SampleServer second;
  private final Occupant occupant = new Occupant();
  private final OpenAIClient endpoint =
      OpenAIOkHttpClient.builder()
          .baseUrl(
              "http://127.0.0.1:%s/v1"
                  .formatted(context.getEnvironment().getProperty("local.server.port")))
          .apiKey("none")
          .maxRetries(0)
          .build();
  private double answeredBySecond;
  private double left;

  OverflowIT(SampleServer second) {
    this.second = second;
  }

  @BeforeAll
  static void start(SampleServer second) {
    context =
        new SpringApplicationBuilder(Application.class)
            .properties(
                Map.ofEntries(
                    Map.entry("server.address", "127.0.0.1"),
                    Map.entry("server.port", "0"),
                    Map.entry("lily.model", System.getProperty("lily.nano.dir")),
                    Map.entry("lily.max-sessions", "1"),
                    Map.entry("lily.queue-limit", "0"),
                    Map.entry("lily.context-length", "512"),
                    Map.entry("lily.chat.temperature", "0"),
                    Map.entry("lily.chat.thinking", "false"),
                    Map.entry("lily.openai.enabled", "true"),
                    Map.entry("lily.overflow.enabled", "true"),
                    Map.entry("spring.ai.openai.base-url", second.apiUrl()),
                    Map.entry("spring.ai.openai.api-key", SampleServer.KEY),
                    Map.entry("spring.ai.openai.chat.model", SampleServer.MODEL),
                    Map.entry("spring.ai.openai.custom-headers.X-Lily-Local-Only", "true"),
                    Map.entry("spring.main.banner-mode", "off")))
            .run();
  }

  @AfterAll
  static void stop() {
    context.close();
  }

  @BeforeEach
  void count() {
    answeredBySecond = second.completed();
    left = left();
  }

  @AfterEach
  void makeRoom() {
    endpoint.close();
    occupant.dispose();
    await().until(() -> engine().stats().running() == 0);
  }

  private static LilyEngine engine() {
    return context.getBean(LilyEngine.class);
  }

  /** What applications get. */
  private static ChatModel model() {
    return context.getBean(ChatModel.class);
  }

  private void fill() {
    context.getBean(LilyChatModel.class).stream(
            new Prompt(
                Questions.STORY, LilyChatOptions.builder().thinking(false).minTokens(400).build()))
        .subscribe(occupant);
    await().until(() -> engine().stats().running() == 1);
  }

  private static double left() {
    return context.getBean(MeterRegistry.class).find("lily.overflow").counters().stream()
        .mapToDouble(Counter::count)
        .sum();
  }

  private void assertLeft(int requests, String reason) {
    assertThat(second.completed()).isEqualTo(answeredBySecond + requests);
    assertThat(left()).isEqualTo(left + requests);
    assertThat(
            context
                .getBean(MeterRegistry.class)
                .get("lily.overflow")
                .tags("reason", reason, "model", "openAiChatModel")
                .counter()
                .count())
        .isGreaterThanOrEqualTo(requests);
  }

  private void assertNothingLeft() {
    assertThat(second.completed()).isEqualTo(answeredBySecond);
    assertThat(left()).isEqualTo(left);
  }

  private static void assertAnsweredBySecond(ChatResponse response, String reason) {
    assertThat(response.getMetadata().<Object>get(Overflow.ANSWERED_BY))
        .isEqualTo("openAiChatModel");
    assertThat(response.getMetadata().<Object>get(Overflow.REASON)).isEqualTo(reason);
    assertThat(response.getMetadata().getModel()).isEqualTo(SampleServer.MODEL);
  }

  private static String text(List<ChatResponse> chunks) {
    return chunks.stream()
        .filter(chunk -> chunk.getResult() != null)
        .map(chunk -> chunk.getResult().getOutput().getText())
        .filter(text -> text != null)
        .collect(Collectors.joining());
  }

  private static Prompt localOnly(String question) {
    return new Prompt(question, LilyChatOptions.builder().thinking(false).localOnly(true).build());
  }

  @Test
  void answersItselfWhileThereIsRoom() {
    ChatResponse response = model().call(new Prompt(Questions.SUM));
    assertThat(response.getResult().getOutput().getText()).isEqualTo(Questions.SUM_ANSWER);
    assertThat(response.getMetadata().<Object>get(Overflow.ANSWERED_BY))
        .isEqualTo(OverflowChatModel.LOCAL);
    assertNothingLeft();
  }

  @Test
  void sendsCallsAndStreamsToTheSecondInstanceWhenTheQueueIsFull() {
    fill();
    ChatResponse response = model().call(new Prompt(Questions.SUM));
    assertThat(response.getResult().getOutput().getText()).isEqualTo(Questions.SUM_ANSWER);
    assertThat(response.getMetadata().getUsage().getCompletionTokens()).isPositive();
    assertAnsweredBySecond(response, "queue-full");

    List<ChatResponse> chunks = model().stream(new Prompt(Questions.SUM)).collectList().block();
    assertThat(text(chunks)).isEqualTo(Questions.SUM_ANSWER);
    assertThat(chunks)
        .hasSizeGreaterThan(2)
        .allSatisfy(chunk -> assertAnsweredBySecond(chunk, "queue-full"));
    assertLeft(2, "queue-full");
  }

  @Test
  void refusesCallsAndStreamsThatAreLocalOnlyWhenTheQueueIsFull() {
    fill();
    Prompt prompt = localOnly(Questions.SUM);
    assertThatThrownBy(() -> model().call(prompt)).isInstanceOf(EngineBusyException.class);
    assertThatThrownBy(() -> model().stream(prompt).blockLast())
        .isInstanceOf(EngineBusyException.class);
    assertNothingLeft();
  }

  @Test
  void sendsToTheSecondInstanceWhatIsTooLongHere() {
    String question = "a ".repeat(600) + Questions.SUM;
    assertAnsweredBySecond(model().call(new Prompt(question)), "prompt-too-long");
    assertThat(model().stream(new Prompt(question)).collectList().block())
        .allSatisfy(chunk -> assertAnsweredBySecond(chunk, "prompt-too-long"));
    assertLeft(2, "prompt-too-long");
    assertThatThrownBy(() -> model().call(localOnly(question)))
        .isInstanceOf(ContextOverflowException.class);
    assertLeft(2, "prompt-too-long");
  }

  @Test
  void saysInTheOtherModelsWordsWhatTheApplicationCanTranslate() {
    fill();
    Prompt prompt = new Prompt(Questions.DAY, LilyChatOptions.builder().thinking(true).build());
    ChatResponse response = model().call(prompt);
    assertAnsweredBySecond(response, "queue-full");
    assertThat(response.getResult().getOutput().getText()).isEqualTo(Questions.DAY_ANSWER);
    assertThat(response.getResult().getOutput().getMetadata().get("reasoningContent"))
        .asString()
        .contains(Questions.DAY_REASONING);
    assertThatThrownBy(
            () ->
                model().call(new Prompt(Questions.DAY, LilyChatOptions.builder().seed(1L).build())))
        .isInstanceOf(EngineBusyException.class);
    assertLeft(1, "queue-full");
  }

  @Test
  void runsToolsOfRequestsThatLeave() {
    fill();
    SpringAiOpenAiIT.WeatherTools tools = new SpringAiOpenAiIT.WeatherTools();
    String answer =
        context
            .getBean(ChatClient.Builder.class)
            .build()
            .prompt()
            .system(Weather.SYSTEM)
            .user(Weather.QUESTION)
            .tools(tools)
            .call()
            .content();
    assertThat(tools.asked).isNotEmpty();
    assertThat(answer).contains(tools.asked.getFirst());
    assertThat(left()).isGreaterThanOrEqualTo(left + 2);
  }

  record Sum(int sum) {}

  @Test
  void takesASchemaAlong() {
    fill();
    Sum sum =
        context
            .getBean(ChatClient.Builder.class)
            .build()
            .prompt(Questions.SUM)
            .call()
            .entity(Sum.class, spec -> spec.useProviderStructuredOutput());
    assertThat(sum).isNotNull();
    assertLeft(1, "queue-full");
  }

  private static ChatCompletionCreateParams.Builder ask() {
    return ChatCompletionCreateParams.builder()
        .model(SampleServer.MODEL)
        .addUserMessage(Questions.SUM);
  }

  @Test
  void sendsWhatTheEndpointIsAskedToTheSecondInstance() {
    fill();
    ChatCompletion answer = endpoint.chat().completions().create(ask().build());
    assertThat(answer.choices().getFirst().message().content()).contains(Questions.SUM_ANSWER);
    assertThat(answer.usage().orElseThrow().completionTokens()).isPositive();

    StringBuilder text = new StringBuilder();
    try (StreamResponse<ChatCompletionChunk> stream =
        endpoint.chat().completions().createStreaming(ask().build())) {
      stream.stream()
          .flatMap(chunk -> chunk.choices().stream())
          .forEach(choice -> choice.delta().content().ifPresent(text::append));
    }
    assertThat(text).hasToString(Questions.SUM_ANSWER);

    Response response =
        endpoint
            .responses()
            .create(
                ResponseCreateParams.builder()
                    .model(SampleServer.MODEL)
                    .input(Questions.SUM)
                    .build());
    assertThat(response.output().toString()).contains(Questions.SUM_ANSWER);
    assertLeft(3, "queue-full");
  }

  @Test
  void returnsToolCallsOfTheSecondInstanceToTheEndpointsClient() {
    fill();
    ChatCompletionCreateParams.Builder weather =
        ChatCompletionCreateParams.builder()
            .model(SampleServer.MODEL)
            .addSystemMessage(Weather.SYSTEM)
            .addUserMessage(Weather.QUESTION)
            .addTool(OpenAiJavaIT.TOOL);
    ChatCompletion answer = endpoint.chat().completions().create(weather.build());
    assertThat(answer.choices().getFirst().finishReason())
        .isEqualTo(ChatCompletion.Choice.FinishReason.TOOL_CALLS);
    assertThat(answer.choices().getFirst().message().toolCalls().orElseThrow())
        .extracting(call -> call.asFunction().function().arguments())
        .anyMatch(arguments -> arguments.contains("Rome"));
    assertLeft(1, "queue-full");
  }

  @Test
  void refusesWhatTheEndpointIsToKeep() {
    fill();
    ChatCompletionCreateParams kept =
        ask().putAdditionalHeader("X-Lily-Local-Only", "true").build();
    assertThatThrownBy(() -> endpoint.chat().completions().create(kept))
        .isInstanceOf(RateLimitException.class);
    assertThatThrownBy(() -> endpoint.chat().completions().createStreaming(kept))
        .isInstanceOf(RateLimitException.class);
    assertNothingLeft();
  }

  @Test
  void keepsAnswersOfTheEndpointThatFitHere() {
    ChatCompletion answer = endpoint.chat().completions().create(ask().build());
    assertThat(answer.choices().getFirst().message().content()).contains(Questions.SUM_ANSWER);
    assertNothingLeft();
  }
}
