package dev.lily.spring.ai;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.chat.ContentPart;
import dev.lily.engine.chat.Conversation;
import dev.lily.engine.chat.Message;
import dev.lily.engine.chat.ResponsePart;
import dev.lily.engine.chat.ToolCall;
import dev.lily.engine.chat.ToolDefinition;
import dev.lily.engine.constraint.OutputConstraint;
import dev.lily.engine.generation.EngineBusyException;
import dev.lily.engine.generation.FinishReason;
import dev.lily.engine.generation.GenerationEvent;
import dev.lily.engine.generation.GenerationHandle;
import dev.lily.engine.generation.GenerationListener;
import dev.lily.engine.generation.GenerationRequest;
import dev.lily.engine.generation.RawPrompt;
import dev.lily.engine.generation.ToolChoice;
import dev.lily.engine.generation.Usage;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.spring.OverflowFailedException;
import dev.lily.spring.RequestOverflow.Destination;
import dev.lily.spring.ScriptedChatModel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.ai.chat.messages.AssistantMessage;
import org.springframework.ai.chat.messages.MessageType;
import org.springframework.ai.chat.messages.ToolResponseMessage;
import org.springframework.ai.chat.messages.ToolResponseMessage.ToolResponse;
import org.springframework.ai.chat.metadata.ChatResponseMetadata;
import org.springframework.ai.chat.metadata.DefaultUsage;
import org.springframework.ai.chat.model.ChatResponse;
import org.springframework.ai.chat.prompt.Prompt;
import org.springframework.ai.model.tool.ToolCallingChatOptions;
import reactor.core.publisher.Flux;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

@Timeout(60)
class OverflowingRequestsTest {
  private static final EngineBusyException BUSY =
      new EngineBusyException(4, 4, Duration.ofSeconds(1));
  private static final LilyChatOptions DEFAULTS = LilyChatOptions.builder().build();

  /** Takes down what it is told, and is ready as long as it is told so. */
  private static final class Recorder implements GenerationListener {
    final List<GenerationEvent> events = new ArrayList<>();
    boolean ready = true;

    @Override
    public void onEvent(GenerationEvent event) {
      events.add(event);
    }

    @Override
    public boolean isReady() {
      return ready;
    }

    GenerationEvent last() {
      return events.getLast();
    }
  }

  private final Recorder recorder = new Recorder();

  private static @Nullable Destination destination(
      ScriptedChatModel model, GenerationRequest request) {
    Overflow overflow = Overflow.builder(DEFAULTS, model, "cluster").build();
    return new OverflowingRequests(overflow).destination(request, BUSY);
  }

  private GenerationHandle submit(ScriptedChatModel model, GenerationRequest request) {
    return destination(model, request).submit(recorder);
  }

  private List<GenerationEvent> answer(ChatResponse... chunks) {
    submit(ScriptedChatModel.streaming(Flux.just(chunks)), GenerationRequest.of("hi"));
    return recorder.events;
  }

  private static ObjectNode json(String text) {
    return (ObjectNode) JsonMapper.shared().readTree(text.replace('\'', '"'));
  }

  private static GenerationRequest.Builder hi() {
    return GenerationRequest.builder(Conversation.of(new Message.User("hi")));
  }

  private static GenerationEvent output(ResponsePart... parts) {
    return new GenerationEvent.Output(List.of(parts), List.of());
  }

  private static ChatResponse message(AssistantMessage.Builder<?> message) {
    return ScriptedChatModel.chunk(message.build());
  }

  @Test
  void namesTheModelThatIsAsked() {
    assertThat(destination(ScriptedChatModel.saying("a"), GenerationRequest.of("hi")).model())
        .isEqualTo(ScriptedChatModel.MODEL);
    ScriptedChatModel nameless =
        ScriptedChatModel.of(ToolCallingChatOptions.builder().build(), Flux.empty());
    assertThat(destination(nameless, GenerationRequest.of("hi")).model()).isEqualTo("cluster");
  }

  @Test
  void tellsTheAnswerAsTheEngineWould() {
    GenerationHandle handle =
        submit(ScriptedChatModel.saying("far ", "away"), GenerationRequest.of("hi"));
    assertThat(recorder.events).hasSize(3);
    assertThat(recorder.events)
        .startsWith(
            output(new ResponsePart.AnswerText("far ")),
            output(new ResponsePart.AnswerText("away")));
    assertThat(recorder.last())
        .isInstanceOfSatisfying(
            GenerationEvent.Completed.class,
            end -> {
              assertThat(end.reason()).isEqualTo(FinishReason.STOP);
              assertThat(end.usage()).isEqualTo(new Usage(4, 3, 0, 0));
            });
    assertThat(handle.isDone()).isTrue();
  }

  @Test
  void tellsReasoningThatChunksHaveWholeSoFar() {
    List<GenerationEvent> events =
        answer(
            message(AssistantMessage.builder().properties(Map.of("reasoningContent", "I "))),
            message(AssistantMessage.builder().properties(Map.of("reasoningContent", "I see"))),
            message(
                AssistantMessage.builder()
                    .content("Yes")
                    .properties(Map.of("reasoningContent", "I see"))));
    assertThat(events)
        .startsWith(
            output(new ResponsePart.ReasoningText("I ")),
            output(new ResponsePart.ReasoningText("see")),
            output(new ResponsePart.AnswerText("Yes")));
  }

  @Test
  void tellsToolCalls() {
    List<GenerationEvent> events =
        answer(
            message(
                AssistantMessage.builder()
                    .toolCalls(
                        List.of(
                            new AssistantMessage.ToolCall(
                                "c1", "function", "look", "{\"at\":1}")))));
    assertThat(events)
        .startsWith(
            output(new ResponsePart.CalledTool(new ToolCall("c1", "look", json("{'at':1}")))));
    assertThat(events.getLast())
        .isInstanceOfSatisfying(
            GenerationEvent.Completed.class,
            end -> assertThat(end.reason()).isEqualTo(FinishReason.TOOL_CALLS));
  }

  @Test
  void countsCachedTokensAndTakesUsageWithoutAGeneration() {
    ChatResponse usage =
        new ChatResponse(
            List.of(),
            ChatResponseMetadata.builder()
                .usage(new DefaultUsage(10, 2, 12, null, 8L, null))
                .build());
    assertThat(answer(ScriptedChatModel.text("a"), usage).getLast())
        .isInstanceOfSatisfying(
            GenerationEvent.Completed.class,
            end -> assertThat(end.usage()).isEqualTo(new Usage(10, 2, 0, 8)));
  }

  @ParameterizedTest
  @ValueSource(strings = {"length", "LENGTH", "max_tokens"})
  void knowsOtherProvidersWordsForTheLimit(String reason) {
    assertThat(answer(ScriptedChatModel.end(reason, 1, 1)).getLast())
        .isInstanceOfSatisfying(
            GenerationEvent.Completed.class,
            end -> assertThat(end.reason()).isEqualTo(FinishReason.LENGTH));
  }

  private static void assertFailed(GenerationEvent event, String message) {
    assertThat(event)
        .isInstanceOfSatisfying(
            GenerationEvent.Failed.class,
            failed ->
                assertThat(failed.cause())
                    .isInstanceOf(OverflowFailedException.class)
                    .hasMessageContaining("cluster")
                    .hasMessageContaining(message));
  }

  @Test
  void failsWhereTheOtherModelDoes() {
    submit(
        ScriptedChatModel.streaming(Flux.error(new IllegalStateException("connection reset"))),
        GenerationRequest.of("hi"));
    assertThat(recorder.events).hasSize(1);
    assertFailed(recorder.last(), "connection reset");
  }

  @Test
  void failsForAnAnswerThatWasHeldBack() {
    assertFailed(answer(ScriptedChatModel.end("content_filter", 1, 1)).getLast(), "content_filter");
  }

  @Test
  void failsForToolCallsWithoutAJsonObject() {
    ChatResponse broken =
        message(
            AssistantMessage.builder()
                .toolCalls(List.of(new AssistantMessage.ToolCall("c1", "function", "look", "[1"))));
    assertThat(answer(broken)).hasSize(1);
    assertFailed(recorder.last(), "look");
  }

  @Test
  void asksForNothingWhileTheListenerIsNotReady() {
    recorder.ready = false;
    GenerationHandle handle =
        submit(ScriptedChatModel.saying("far ", "away"), GenerationRequest.of("hi"));
    assertThat(recorder.events).isEmpty();
    handle.wake();
    assertThat(recorder.events).isEmpty();
    recorder.ready = true;
    handle.wake();
    assertThat(recorder.events).hasSize(3);
    handle.wake();
    assertThat(recorder.events).hasSize(3);
  }

  @Test
  void cancelsTheOtherModel() {
    ScriptedChatModel endless =
        ScriptedChatModel.streaming(
            Flux.concat(Flux.just(ScriptedChatModel.text("one")), Flux.never()));
    GenerationHandle handle = submit(endless, GenerationRequest.of("hi"));
    handle.cancel();
    assertThat(endless.cancellations).hasValue(1);
    assertThat(handle.isDone()).isTrue();
    assertThat(recorder.events).hasSize(1);
  }

  private static Prompt sent(GenerationRequest request) {
    ScriptedChatModel model = ScriptedChatModel.saying("a");
    destination(model, request).submit(event -> {});
    return model.prompts.getFirst();
  }

  @Test
  void sendsTheWholeConversation() {
    Conversation conversation =
        new Conversation(
            List.of(
                new Message.Instructions("Be brief."),
                new Message.User(
                    List.of(new ContentPart.Text("one "), new ContentPart.Text("two"))),
                new Message.Assistant(
                    List.of(new ContentPart.Text("I look.")),
                    "Hm.",
                    List.of(
                        new ToolCall("c1", "look", json("{'at':1}")),
                        new ToolCall("", "look", json("{'at':2}")))),
                new Message.ToolResult("first"),
                new Message.ToolResult("second"),
                new Message.User("And?")),
            List.of(ToolDefinition.of("look", "Looks", json("{'type':'object'}"))));
    Prompt prompt = sent(GenerationRequest.builder(conversation).build());
    assertThat(prompt.getInstructions())
        .extracting(org.springframework.ai.chat.messages.Message::getMessageType)
        .containsExactly(
            MessageType.SYSTEM,
            MessageType.USER,
            MessageType.ASSISTANT,
            MessageType.TOOL,
            MessageType.USER);
    assertThat(prompt.getInstructions())
        .extracting(org.springframework.ai.chat.messages.Message::getText)
        .startsWith("Be brief.", "one two", "I look.")
        .endsWith("And?");
    assertThat(prompt.getInstructions().get(2))
        .isInstanceOfSatisfying(
            AssistantMessage.class,
            message -> {
              assertThat(message.getMetadata()).containsEntry("reasoningContent", "Hm.");
              assertThat(message.getToolCalls())
                  .containsExactly(
                      new AssistantMessage.ToolCall("c1", "function", "look", "{\"at\":1}"),
                      new AssistantMessage.ToolCall("call_2_1", "function", "look", "{\"at\":2}"));
            });
    assertThat(prompt.getInstructions().get(3))
        .isInstanceOfSatisfying(
            ToolResponseMessage.class,
            message ->
                assertThat(message.getResponses())
                    .containsExactly(
                        new ToolResponse("c1", "look", "first"),
                        new ToolResponse("call_2_1", "look", "second")));
    assertThat(((ToolCallingChatOptions) prompt.getOptions()).getToolCallbacks())
        .singleElement()
        .satisfies(
            tool -> {
              assertThat(tool.getToolDefinition().name()).isEqualTo("look");
              assertThat(tool.getToolDefinition().description()).isEqualTo("Looks");
              assertThat(tool.getToolDefinition().inputSchema()).isEqualTo("{\"type\":\"object\"}");
            });
  }

  @Test
  void sendsPortableOptions() {
    Prompt prompt =
        sent(
            hi().sampling(SamplingOptions.builder().temperature(0.5).topP(0.8).build())
                .maxTokens(9)
                .stopStrings(List.of("END"))
                .build());
    assertThat(prompt.getOptions().getTemperature()).isEqualTo(0.5);
    assertThat(prompt.getOptions().getTopP()).isEqualTo(0.8);
    assertThat(prompt.getOptions().getMaxTokens()).isEqualTo(9);
    assertThat(prompt.getOptions().getStopSequences()).containsExactly("END");
  }

  static Stream<GenerationRequest> requestsThatStay() {
    Conversation tools =
        new Conversation(
            List.of(new Message.User("hi")),
            List.of(ToolDefinition.of("look", "Looks", json("{'type':'object'}"))));
    return Stream.of(
        GenerationRequest.builder(new RawPrompt.Text("Once")).build(),
        GenerationRequest.builder(tools).toolChoice(ToolChoice.REQUIRED).build(),
        GenerationRequest.builder(tools).parallelToolCalls(false).build(),
        hi().output(new OutputConstraint.Regex("[a-z]+")).build(),
        hi().output(new OutputConstraint.JsonObject()).build(),
        hi().output(new OutputConstraint.Choice(List.of("a", "b"))).build(),
        hi().output(OutputConstraint.JsonSchema.parse("{\"type\":\"object\"}")).build(),
        hi().sampling(SamplingOptions.builder().seed(1L).build()).build(),
        hi().sampling(SamplingOptions.builder().minP(0.1).build()).build(),
        hi().thinking(false).build(),
        hi().preserveThinking(true).build(),
        hi().minTokens(2).build(),
        hi().topLogprobs(0).build(),
        hi().timeout(Duration.ofSeconds(1)).build(),
        GenerationRequest.builder(
                Conversation.of(new Message.User(List.of(new ContentPart.Image()))))
            .build());
  }

  @ParameterizedTest
  @MethodSource("requestsThatStay")
  void keepsWhatTheOtherModelCannotHonour(GenerationRequest request) {
    assertThat(destination(ScriptedChatModel.saying("a"), request)).isNull();
  }

  @Test
  void asksPoliciesBeforeTheEngineIsAsked() {
    ScriptedChatModel model = ScriptedChatModel.saying("a");
    OverflowingRequests without =
        new OverflowingRequests(Overflow.builder(DEFAULTS, model, "cluster").build());
    assertThat(without.destination(GenerationRequest.of("hi"), null)).isNull();
    OverflowingRequests with =
        new OverflowingRequests(
            Overflow.builder(DEFAULTS, model, "cluster")
                .policies(List.of(prompt -> prompt.getContents().contains("big")))
                .build());
    assertThat(with.destination(GenerationRequest.of("small"), null)).isNull();
    assertThat(with.destination(GenerationRequest.of("big"), null)).isNotNull();
  }
}
