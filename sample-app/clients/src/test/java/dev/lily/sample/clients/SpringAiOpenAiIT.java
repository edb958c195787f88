package dev.lily.sample.clients;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.openai.errors.BadRequestException;
import com.openai.errors.NotFoundException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.ai.chat.client.ChatClient;
import org.springframework.ai.chat.model.ChatResponse;
import org.springframework.ai.openai.OpenAiChatModel;
import org.springframework.ai.openai.OpenAiChatOptions;
import org.springframework.ai.tool.annotation.Tool;
import org.springframework.ai.tool.annotation.ToolParam;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;

/** An application with Spring AI's starter for OpenAI, auto-configured by properties alone. */
@Timeout(120)
@ExtendWith(SampleServer.Provider.class)
class SpringAiOpenAiIT {

  @SpringBootConfiguration
  @EnableAutoConfiguration
  static class Application {}

  /** The tool, as an application writes it. */
  static final class WeatherTools {
    final List<String> asked = new CopyOnWriteArrayList<>();

    @Tool(name = Weather.TOOL, description = Weather.DESCRIPTION)
    String weather(@ToolParam(description = "The city") String city) {
      asked.add(city);
      return Weather.in(city);
    }
  }

  private static ConfigurableApplicationContext context;
  private final SampleServer server;

  SpringAiOpenAiIT(SampleServer server) {
    this.server = server;
  }

  @BeforeAll
  static void start(SampleServer server) {
    context =
        new SpringApplicationBuilder(Application.class)
            .web(WebApplicationType.NONE)
            .properties(
                Map.of(
                    "spring.ai.openai.base-url",
                    server.apiUrl(),
                    "spring.ai.openai.api-key",
                    SampleServer.KEY,
                    "spring.ai.openai.chat.model",
                    SampleServer.MODEL,
                    "spring.ai.model.chat",
                    "openai",
                    "spring.main.banner-mode",
                    "off"))
            .run();
  }

  @AfterAll
  static void stop() {
    context.close();
  }

  private static ChatClient client() {
    return context.getBean(ChatClient.Builder.class).build();
  }

  private static OpenAiChatOptions.Builder options() {
    return OpenAiChatOptions.builder().model(SampleServer.MODEL);
  }

  private static ChatClient.ChatClientRequestSpec weather(WeatherTools tools) {
    return client().prompt().system(Weather.SYSTEM).user(Weather.QUESTION).tools(tools);
  }

  @Test
  void answersWithUsage() {
    ChatResponse response = client().prompt(Questions.SUM).call().chatResponse();
    assertThat(response.getResult().getOutput().getText()).isEqualTo(Questions.SUM_ANSWER);
    assertThat(response.getResult().getMetadata().getFinishReason()).isEqualToIgnoringCase("stop");
    var usage = response.getMetadata().getUsage();
    assertThat(usage.getPromptTokens()).isPositive();
    assertThat(usage.getTotalTokens())
        .isEqualTo(usage.getPromptTokens() + usage.getCompletionTokens());
    assertThat(response.getMetadata().getModel()).isEqualTo(SampleServer.MODEL);
  }

  @Test
  void streamsTheSameAnswerInPiecesWithUsage() {
    List<String> pieces = new ArrayList<>();
    List<Integer> totals = new ArrayList<>();
    client().prompt(Questions.SUM).stream()
        .chatResponse()
        .doOnNext(
            chunk -> {
              if (chunk.getResult() != null && chunk.getResult().getOutput().getText() != null) {
                pieces.add(chunk.getResult().getOutput().getText());
              }
              totals.add(chunk.getMetadata().getUsage().getTotalTokens());
            })
        .blockLast();
    assertThat(String.join("", pieces)).isEqualTo(Questions.SUM_ANSWER);
    assertThat(pieces).filteredOn(piece -> !piece.isEmpty()).hasSizeGreaterThan(1);
    assertThat(totals.getLast())
        .isEqualTo(
            client()
                .prompt(Questions.SUM)
                .call()
                .chatResponse()
                .getMetadata()
                .getUsage()
                .getTotalTokens());
  }

  @Test
  void streamsTextInPiecesAlsoWhenToolsAreOffered() {
    List<String> pieces =
        client().prompt(Questions.STORY).tools(new WeatherTools()).stream()
            .content()
            .collectList()
            .block();
    assertThat(pieces).hasSizeGreaterThan(20);
  }

  @Test
  void keepsReasoningOutOfTheAnswer() {
    ChatResponse response =
        client()
            .prompt(Questions.DAY)
            .options(options().reasoningEffort("high"))
            .call()
            .chatResponse();
    assertThat(response.getResult().getOutput().getText()).isEqualTo(Questions.DAY_ANSWER);
    assertThat(response.getResult().getOutput().getMetadata())
        .containsEntry("reasoningContent", Questions.DAY_REASONING);
  }

  @Test
  void runsToolsInACall() {
    WeatherTools tools = new WeatherTools();
    assertThat(weather(tools).call().content()).contains("Rome").contains("Cairo");
    assertThat(tools.asked).containsExactly("Rome", "Cairo");
  }

  @Test
  void runsToolsInAStream() {
    WeatherTools tools = new WeatherTools();
    List<String> pieces = weather(tools).stream().content().collectList().block();
    assertThat(String.join("", pieces)).contains("Rome").contains("Cairo");
    assertThat(pieces).hasSizeGreaterThan(5);
    assertThat(tools.asked).containsExactly("Rome", "Cairo");
  }

  @Test
  void mapsErrors() {
    NotFoundException notFound =
        catchThrowableOfType(
            NotFoundException.class,
            () ->
                client()
                    .prompt(Questions.SUM)
                    .options(OpenAiChatOptions.builder().model("other"))
                    .call()
                    .content());
    assertThat(notFound.code()).contains("model_not_found");
    assertThatThrownBy(() -> client().prompt(Questions.LONG).stream().content().blockLast())
        .rootCause()
        .isInstanceOfSatisfying(
            BadRequestException.class,
            tooLong -> assertThat(tooLong.code()).contains("context_length_exceeded"));
  }

  @Test
  void stopsTheEngineWhenAStreamIsCancelled() throws Exception {
    server.stopsWhen(
        () ->
            client()
                .prompt(Questions.STORY)
                .options(options().extraBody(Map.of("min_tokens", SampleServer.ENDLESS)))
                .stream()
                .content()
                .take(5)
                .blockLast());
  }

  record Sum(int sum) {}

  @Test
  void answersByAJsonSchema() {
    Sum sum =
        client()
            .prompt(Questions.SUM)
            .call()
            .entity(Sum.class, spec -> spec.useProviderStructuredOutput());
    assertThat(sum).isNotNull();
  }

  @Test
  void isTheModelOfTheStarter() {
    assertThat(context.getBeansOfType(org.springframework.ai.chat.model.ChatModel.class).values())
        .singleElement()
        .isInstanceOf(OpenAiChatModel.class);
  }
}
