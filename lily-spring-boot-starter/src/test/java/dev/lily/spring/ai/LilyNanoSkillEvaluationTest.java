package dev.lily.spring.ai;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.spring.Nano;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.springframework.ai.chat.messages.AssistantMessage;
import org.springframework.ai.chat.messages.Message;
import org.springframework.ai.chat.messages.SystemMessage;
import org.springframework.ai.chat.messages.ToolResponseMessage;
import org.springframework.ai.chat.messages.UserMessage;
import org.springframework.ai.chat.model.ChatResponse;
import org.springframework.ai.chat.prompt.Prompt;
import org.springframework.ai.tool.ToolCallback;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/**
 * The 200 public skill cases of lily-nano, greedily, through the chat model. The float32 reference
 * passes 196.
 */
class LilyNanoSkillEvaluationTest {

  private static final int REQUIRED = 194;

  private final LilyChatModel model = LilyChatModel.builder(Nano.engine()).build();

  @Test
  void answersAsManyCasesAsTheReference() throws Exception {
    JsonNode cases = read();
    Map<String, int[]> table = new LinkedHashMap<>();
    List<String> misses = new ArrayList<>();
    try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      Map<JsonNode, Future<ChatResponse>> answers = new LinkedHashMap<>();
      for (JsonNode one : cases) {
        answers.put(one, threads.submit(() -> model.call(prompt(one))));
      }
      for (Map.Entry<JsonNode, Future<ChatResponse>> answer : answers.entrySet()) {
        JsonNode one = answer.getKey();
        ChatResponse response = get(answer.getValue());
        int[] passed = table.computeIfAbsent(one.get("skill").stringValue(), skill -> new int[2]);
        passed[1]++;
        if (passes(one, response)) {
          passed[0]++;
        } else {
          misses.add(one.get("id").stringValue() + ": " + response.getResult().getOutput());
        }
      }
    }
    int total = table.values().stream().mapToInt(passed -> passed[0]).sum();
    StringBuilder report = new StringBuilder("Skills of " + Nano.NAME + ":\n");
    table.forEach((skill, n) -> report.append("%-10s %3d/%d%n".formatted(skill, n[0], n[1])));
    report.append("%-10s %3d/%d%n".formatted("all", total, cases.size()));
    System.out.println(report);

    assertThat(cases.size()).isEqualTo(200);
    assertThat(total)
        .as("%s%s", report, String.join("\n", misses))
        .isGreaterThanOrEqualTo(REQUIRED);
  }

  private static ChatResponse get(Future<ChatResponse> answer)
      throws InterruptedException, ExecutionException {
    return answer.get();
  }

  private static JsonNode read() throws IOException {
    Path file = Path.of("..", "lily-engine/src/test/resources/goldens/lily-nano/eval.json");
    return JsonMapper.shared().readTree(Files.readString(file)).get("cases");
  }

  private static Prompt prompt(JsonNode one) {
    List<ToolCallback> tools = new ArrayList<>();
    for (JsonNode tool : one.path("tools")) {
      JsonNode function = tool.get("function");
      tools.add(
          Tools.tool(
              function.get("name").stringValue(),
              function.get("description").stringValue(),
              function.get("parameters").toString()));
    }
    List<Message> messages = new ArrayList<>();
    for (JsonNode message : one.get("messages")) {
      messages.add(message(message));
    }
    return new Prompt(
        messages,
        LilyChatOptions.builder()
            .temperature(0.0)
            .thinking(one.get("enable_thinking").booleanValue())
            .maxTokens(420)
            .toolCallbacks(tools)
            .build());
  }

  private static Message message(JsonNode message) {
    String content = message.get("content").stringValue();
    return switch (message.get("role").stringValue()) {
      case "system" -> new SystemMessage(content);
      case "user" -> new UserMessage(content);
      case "tool" ->
          ToolResponseMessage.builder()
              .responses(List.of(new ToolResponseMessage.ToolResponse("", "", content)))
              .build();
      case "assistant" -> assistant(message, content);
      default -> throw new AssertionError(message);
    };
  }

  private static AssistantMessage assistant(JsonNode message, String content) {
    List<AssistantMessage.ToolCall> calls = new ArrayList<>();
    for (JsonNode call : message.path("tool_calls")) {
      JsonNode function = call.get("function");
      calls.add(
          new AssistantMessage.ToolCall(
              "",
              "function",
              function.get("name").stringValue(),
              function.get("arguments").toString()));
    }
    return AssistantMessage.builder()
        .content(content)
        .properties(
            Map.of(ChatResponseMapper.REASONING, message.path("reasoning_content").asString("")))
        .toolCalls(calls)
        .build();
  }

  private static boolean passes(JsonNode one, ChatResponse response) {
    AssistantMessage answer = response.getResult().getOutput();
    String text = String.valueOf(answer.getText());
    return switch (one.get("check").stringValue()) {
      case "exact" ->
          text.equals(one.get("expected_content").stringValue()) && !answer.hasToolCalls();
      case "calls" -> calls(answer).equals(one.get("expected_calls"));
      case "story" ->
          text.split("\\s+").length >= 50
              && "stop".equals(response.getResult().getMetadata().getFinishReason());
      default -> throw new AssertionError(one);
    };
  }

  private static JsonNode calls(AssistantMessage answer) {
    var calls = JsonMapper.shared().createArrayNode();
    for (AssistantMessage.ToolCall call : answer.getToolCalls()) {
      calls
          .addObject()
          .put("name", call.name())
          .set("arguments", JsonMapper.shared().readTree(call.arguments()));
    }
    return calls;
  }
}
