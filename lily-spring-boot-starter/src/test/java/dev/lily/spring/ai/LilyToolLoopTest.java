package dev.lily.spring.ai;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.lily.spring.Nano;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationHandler;
import io.micrometer.observation.ObservationRegistry;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.ai.chat.client.ChatClient;
import org.springframework.ai.chat.client.ChatClientRequest;
import org.springframework.ai.chat.client.ChatClientResponse;
import org.springframework.ai.chat.client.advisor.api.CallAdvisor;
import org.springframework.ai.chat.client.advisor.api.CallAdvisorChain;
import org.springframework.ai.chat.client.advisor.api.StreamAdvisor;
import org.springframework.ai.chat.client.advisor.api.StreamAdvisorChain;
import org.springframework.ai.chat.messages.AssistantMessage;
import org.springframework.ai.chat.messages.Message;
import org.springframework.ai.chat.messages.ToolResponseMessage;
import org.springframework.ai.chat.metadata.Usage;
import org.springframework.ai.chat.model.ChatResponse;
import org.springframework.ai.chat.observation.ChatModelObservationContext;
import org.springframework.ai.chat.prompt.Prompt;
import org.springframework.ai.tool.annotation.Tool;
import org.springframework.ai.tool.annotation.ToolParam;
import reactor.core.publisher.Flux;
import reactor.test.StepVerifier;

/** Rounds of tools through ChatClient: what each round tells the model, and what comes out. */
@Timeout(300)
class LilyToolLoopTest {

  private static final String ANSWER =
      "It is sunny and 25 degrees in Rome. It is clear and 33 degrees in Cairo.";

  /** What the model was asked and answered, round by round. */
  private static final class Rounds implements ObservationHandler<ChatModelObservationContext> {
    private final List<ChatModelObservationContext> contexts = new CopyOnWriteArrayList<>();

    @Override
    public void onStop(ChatModelObservationContext context) {
      contexts.add(context);
    }

    @Override
    public boolean supportsContext(Observation.Context context) {
      return context instanceof ChatModelObservationContext;
    }

    int number() {
      return contexts.size();
    }

    List<Message> messages(int round) {
      return contexts.get(round).getRequest().getInstructions();
    }

    ChatResponse response(int round) {
      return contexts.get(round).getResponse();
    }

    List<String> toolResults(int round) {
      return ((ToolResponseMessage) messages(round).getLast())
          .getResponses().stream()
              .map(ToolResponseMessage.ToolResponse::responseData)
              .collect(Collectors.toList());
    }
  }

  static class CityTools {
    final List<String> asked = new CopyOnWriteArrayList<>();

    @Tool(name = "get_weather", description = "Get the weather in a given city.")
    String weather(@ToolParam(description = "The city") String city) {
      asked.add(city);
      return city.equals("Rome") ? "sunny, 25 degrees" : "clear, 33 degrees";
    }
  }

  static final class DirectTools {
    @Tool(
        name = "get_weather",
        description = "Get the weather in a given city.",
        returnDirect = true)
    String weather(@ToolParam(description = "The city") String city) {
      return "weather of " + city;
    }
  }

  static final class FailingTool {
    @Tool(name = "deploy_bucket", description = "Deploy the bucket")
    String deploy() {
      throw new IllegalStateException("{\"error\": \"timeout\"}");
    }
  }

  private final Rounds rounds = new Rounds();
  private final LilyChatModel model;

  LilyToolLoopTest() {
    ObservationRegistry registry = ObservationRegistry.create();
    registry.observationConfig().observationHandler(rounds);
    model =
        LilyChatModel.builder(Nano.engine())
            .observationRegistry(registry)
            .options(
                LilyChatOptions.builder().temperature(0.0).thinking(true).maxTokens(300).build())
            .build();
  }

  private ChatClient.ChatClientRequestSpec weather(Object tools) {
    return ChatClient.create(model)
        .prompt()
        .system("You are a helpful assistant with tools.")
        .user("What is the weather in Rome and Cairo?")
        .tools(tools);
  }

  private static List<ChatResponse> responses(
      ChatClient.ChatClientRequestSpec request, boolean stream) {
    return stream
        ? request.stream().chatResponse().collectList().block()
        : List.of(request.call().chatResponse());
  }

  private static String text(List<ChatResponse> responses) {
    return responses.stream()
        .flatMap(response -> response.getResults().stream())
        .map(generation -> String.valueOf(generation.getOutput().getText()))
        .collect(Collectors.joining("|"))
        .replace("|", "");
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void givesBothResultsOfParallelCallsBackAtOnce(boolean stream) {
    CityTools tools = new CityTools();
    List<ChatResponse> responses = responses(weather(tools), stream);

    assertThat(text(responses)).isEqualTo(ANSWER);
    assertThat(tools.asked).containsExactly("Rome", "Cairo");
    assertThat(rounds.number()).isEqualTo(2);
    AssistantMessage calling = rounds.response(0).getResult().getOutput();
    assertThat(calling.getToolCalls())
        .extracting(AssistantMessage.ToolCall::arguments)
        .containsExactly("{\"city\":\"Rome\"}", "{\"city\":\"Cairo\"}");
    List<Message> second = rounds.messages(1);
    assertThat(second).hasSize(4);
    assertThat(((AssistantMessage) second.get(2)).getToolCalls()).isEqualTo(calling.getToolCalls());
    assertThat(rounds.toolResults(1))
        .containsExactly("\"sunny, 25 degrees\"", "\"clear, 33 degrees\"");
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void keepsReasoningAndUsageOfEveryRound(boolean stream) {
    List<ChatResponse> responses = responses(weather(new CityTools()), stream);

    Object thought =
        rounds.response(0).getResult().getOutput().getMetadata().get("reasoningContent");
    assertThat(thought).asString().isNotEmpty();
    assertThat(rounds.messages(1).get(2).getMetadata()).containsEntry("reasoningContent", thought);
    assertThat(responses.getLast().getResult().getOutput().getMetadata())
        .containsEntry(
            "reasoningContent",
            rounds.response(1).getResult().getOutput().getMetadata().get("reasoningContent"));

    Usage all = responses.getLast().getMetadata().getUsage();
    Usage first = rounds.response(0).getMetadata().getUsage();
    Usage second = rounds.response(1).getMetadata().getUsage();
    assertThat(all.getPromptTokens()).isEqualTo(first.getPromptTokens() + second.getPromptTokens());
    assertThat(all.getCompletionTokens())
        .isEqualTo(first.getCompletionTokens() + second.getCompletionTokens());
  }

  @Test
  void showsTheThoughtBeforeTheCallsInTheStream() {
    List<ChatResponse> chunks = responses(weather(new CityTools()), true);
    Object thought =
        rounds.response(0).getResult().getOutput().getMetadata().get("reasoningContent");
    assertThat(chunks)
        .anySatisfy(
            chunk ->
                assertThat(chunk.getResult().getOutput().getMetadata())
                    .containsEntry("reasoningContent", thought));
    assertThat(chunks).noneMatch(ChatResponse::hasToolCalls);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void returnsDirectResultsWithoutAnotherRound(boolean stream) {
    List<ChatResponse> responses = responses(weather(new DirectTools()), stream);
    assertThat(rounds.number()).isEqualTo(1);
    assertThat(responses.getLast().getResults())
        .extracting(generation -> generation.getOutput().getText())
        .containsExactly("\"weather of Rome\"", "\"weather of Cairo\"");
    assertThat(responses.getLast().getResults())
        .extracting(generation -> generation.getMetadata().getFinishReason())
        .containsOnly("returnDirect");
    assertThat(responses.getLast().getMetadata().getUsage().getCompletionTokens())
        .isEqualTo(rounds.response(0).getMetadata().getUsage().getCompletionTokens());
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void tellsTheModelThatAToolFailed(boolean stream) {
    List<ChatResponse> responses =
        responses(
            ChatClient.create(model)
                .prompt()
                .system("You are Lily nano.")
                .user("Deploy the bucket.")
                .tools(new FailingTool()),
            stream);
    assertThat(rounds.toolResults(1)).containsExactly("{\"error\": \"timeout\"}");
    assertThat(text(responses)).isEqualTo("The tool reported an error: timeout.");
  }

  /** Shows the model a tool that nobody can run. */
  private static final class UnknownTool implements CallAdvisor, StreamAdvisor {

    @Override
    public ChatClientResponse adviseCall(ChatClientRequest request, CallAdvisorChain chain) {
      return chain.nextCall(withUnknownTool(request));
    }

    @Override
    public Flux<ChatClientResponse> adviseStream(
        ChatClientRequest request, StreamAdvisorChain chain) {
      return chain.nextStream(withUnknownTool(request));
    }

    private static ChatClientRequest withUnknownTool(ChatClientRequest request) {
      LilyChatOptions options = (LilyChatOptions) request.prompt().getOptions();
      Prompt prompt =
          request
              .prompt()
              .mutate()
              .chatOptions(
                  options
                      .mutate()
                      .toolCallbacks(
                          Tools.tool(
                              "get_weather",
                              "Get the weather in a given city.",
                              """
                              {"type":"object","properties":{"city":{"type":"string"}},
                               "required":["city"]}"""))
                      .build())
              .build();
      return request.mutate().prompt(prompt).build();
    }

    @Override
    public String getName() {
      return "unknown tool";
    }

    @Override
    public int getOrder() {
      return 0;
    }
  }

  @Test
  void failsWhereNobodyCanRunATool() {
    ChatClient.ChatClientRequestSpec request =
        weather(new FailingTool()).advisors(new UnknownTool());
    assertThatExceptionOfType(IllegalStateException.class)
        .isThrownBy(() -> request.call().chatResponse())
        .withMessage("No ToolCallback found for tool name: get_weather");
    StepVerifier.create(request.stream().chatResponse())
        .thenConsumeWhile(chunk -> true)
        .verifyErrorMessage("No ToolCallback found for tool name: get_weather");
    assertThat(text(responses(weather(new CityTools()), true))).isEqualTo(ANSWER);
    assertThat(new ArrayList<>(rounds.contexts)).noneMatch(context -> context.getError() != null);
  }
}
