package dev.lily.spring.ai;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.lily.engine.chat.ToolCall;
import dev.lily.engine.generation.FinishReason;
import dev.lily.engine.generation.GenerationResult;
import dev.lily.engine.generation.Timings;
import dev.lily.engine.generation.TokenLogprob;
import dev.lily.engine.generation.Usage;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.springframework.ai.chat.messages.AssistantMessage;
import org.springframework.ai.chat.metadata.ChatGenerationMetadata;
import org.springframework.ai.chat.model.ChatResponse;
import org.springframework.ai.chat.prompt.Prompt;
import org.springframework.ai.model.tool.ToolCallingManager;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

class ChatResponseMapperTest {

  private static final Usage USAGE = new Usage(20, 8, 3, 16);
  private static final Timings TIMINGS =
      new Timings(
          Duration.ofMillis(1),
          Duration.ofMillis(20),
          Duration.ofMillis(25),
          Duration.ofMillis(70));

  private final ChatResponseMapper mapper = new ChatResponseMapper("lily-nano");

  private static GenerationResult result(
      String text, String reasoning, List<ToolCall> calls, String cut, FinishReason reason) {
    return new GenerationResult(text, reasoning, calls, cut, List.of(), reason, USAGE, TIMINGS);
  }

  @Test
  void keepsReasoningOutOfTheText() {
    ChatResponse response =
        mapper.response("id", result("4", "Easy.", List.of(), "", FinishReason.STOP));
    AssistantMessage message = response.getResult().getOutput();
    assertThat(message.getText()).isEqualTo("4");
    assertThat(message.getMetadata()).containsEntry("reasoningContent", "Easy.");
  }

  @Test
  void hasNoReasoningKeyWithoutReasoning() {
    ChatResponse response =
        mapper.response("id", result("4", "", List.of(), "", FinishReason.STOP));
    assertThat(response.getResult().getOutput().getMetadata())
        .doesNotContainKey("reasoningContent");
  }

  @Test
  void reportsUsageModelIdAndTimings() {
    ChatResponse response =
        mapper.response("id-1", result("4", "", List.of(), "", FinishReason.STOP));
    assertThat(response.getMetadata().getId()).isEqualTo("id-1");
    assertThat(response.getMetadata().getModel()).isEqualTo("lily-nano");
    assertThat(response.getMetadata().getUsage())
        .satisfies(
            usage -> {
              assertThat(usage.getPromptTokens()).isEqualTo(20);
              assertThat(usage.getCompletionTokens()).isEqualTo(8);
              assertThat(usage.getTotalTokens()).isEqualTo(28);
              assertThat(usage.getNativeUsage()).isEqualTo(USAGE);
              assertThat(usage.getCacheReadInputTokens()).isEqualTo(16);
            });
    assertThat(response.getMetadata().<Duration>get("queuedTime")).hasMillis(1);
    assertThat(response.getMetadata().<Duration>get("prefillTime")).hasMillis(20);
    assertThat(response.getMetadata().<Duration>get("timeToFirstToken")).hasMillis(25);
    assertThat(response.getMetadata().<Duration>get("decodeTime")).hasMillis(70);
  }

  @Test
  void writesFinishReasonsInOpenAiWords() {
    for (FinishReason reason : FinishReason.values()) {
      String word =
          switch (reason) {
            case STOP -> "stop";
            case LENGTH -> "length";
            case TOOL_CALLS -> "tool_calls";
            case CANCELLED -> "cancelled";
          };
      ChatResponse response = mapper.response("id", result("", "", List.of(), "", reason));
      assertThat(response.getResult().getMetadata().getFinishReason()).isEqualTo(word);
      assertThat(response.hasFinishReasons(Set.of(word))).isTrue();
    }
  }

  @Test
  void writesToolCallsAsJsonObjects() {
    ObjectNode arguments = JsonMapper.shared().createObjectNode();
    arguments.put("z", "Zürich \"x\"").put("a", 3);
    List<ToolCall> calls =
        List.of(
            new ToolCall("c1", "get_weather", arguments),
            new ToolCall("c2", "now", JsonMapper.shared().createObjectNode()));
    ChatResponse response =
        mapper.response("id", result("", "", calls, "", FinishReason.TOOL_CALLS));
    assertThat(response.hasToolCalls()).isTrue();
    assertThat(response.getResult().getOutput().getToolCalls())
        .containsExactly(
            new AssistantMessage.ToolCall(
                "c1", "function", "get_weather", "{\"z\":\"Zürich \\\"x\\\"\",\"a\":3}"),
            new AssistantMessage.ToolCall("c2", "function", "now", "{}"));
  }

  @Test
  void neverReportsACutCallAsCallable() {
    ChatResponse response =
        mapper.response("id", result("", "", List.of(), "<function=get_wea", FinishReason.LENGTH));
    assertThat(response.hasToolCalls()).isFalse();
    assertThat(response.getResult().getMetadata().getFinishReason()).isEqualTo("length");
    assertThat(response.getResult().getMetadata().<String>get("incompleteToolCall"))
        .isEqualTo("<function=get_wea");
  }

  @Test
  void theToolLoopEndsWithAnErrorWhereAToolIsUnknown() {
    List<ToolCall> calls =
        List.of(new ToolCall("c1", "execute_javascript", JsonMapper.shared().createObjectNode()));
    ChatResponse response =
        mapper.response("id", result("", "", calls, "", FinishReason.TOOL_CALLS));
    Prompt prompt =
        new Prompt(
            "x",
            LilyChatOptions.builder()
                .toolCallbacks(Tools.tool("QuickJS_execute_javascript", "Runs code", "{}"))
                .build());
    assertThatThrownBy(
            () -> ToolCallingManager.builder().build().executeToolCalls(prompt, response))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining(" execute_javascript");
  }

  @Test
  void carriesLogprobs() {
    TokenLogprob token = new TokenLogprob(7, new byte[] {'h'}, -0.5f, List.of());
    GenerationResult result =
        new GenerationResult(
            "h", "", List.of(), "", List.of(token), FinishReason.STOP, USAGE, TIMINGS);
    assertThat(
            mapper
                .response("id", result)
                .getResult()
                .getMetadata()
                .<List<TokenLogprob>>get("logprobs"))
        .containsExactly(token);
  }

  @Test
  void leavesGenerationMetadataOfEarlierChunksToTheLast() {
    ChatResponse chunk = mapper.chunk("id", "Hel", "So far");
    assertThat(chunk.getResult().getMetadata()).isSameAs(ChatGenerationMetadata.NULL);
    assertThat(chunk.getResult().getOutput().getText()).isEqualTo("Hel");
    assertThat(chunk.getResult().getOutput().getMetadata())
        .containsEntry("reasoningContent", "So far");
    assertThat(chunk.getMetadata().getId()).isEqualTo("id");
    assertThat(chunk.getMetadata().getModel()).isEqualTo("lily-nano");
    assertThat(chunk.getMetadata().getUsage().getTotalTokens()).isZero();
  }

  @Test
  void repeatsNoTextInTheLastChunk() {
    ChatResponse last =
        mapper.lastChunk("id", result("all", "why", List.of(), "", FinishReason.STOP));
    assertThat(last.getResult().getOutput().getText()).isEmpty();
    assertThat(last.getResult().getOutput().getMetadata()).containsEntry("reasoningContent", "why");
    assertThat(last.getMetadata().getUsage().getTotalTokens()).isEqualTo(28);
  }
}
