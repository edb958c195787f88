package dev.lily.spring.ai;

import dev.lily.engine.chat.ContentPart;
import dev.lily.engine.chat.Conversation;
import dev.lily.engine.chat.Message;
import dev.lily.engine.chat.ToolCall;
import dev.lily.engine.chat.ToolDefinition;
import dev.lily.engine.constraint.OutputConstraint;
import dev.lily.engine.generation.GenerationRequest;
import dev.lily.engine.generation.ToolChoice;
import dev.lily.engine.sampling.SamplingOptions;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.springframework.ai.chat.messages.AssistantMessage;
import org.springframework.ai.chat.messages.SystemMessage;
import org.springframework.ai.chat.messages.ToolResponseMessage;
import org.springframework.ai.chat.messages.ToolResponseMessage.ToolResponse;
import org.springframework.ai.chat.messages.UserMessage;
import org.springframework.ai.chat.prompt.Prompt;
import org.springframework.ai.tool.ToolCallback;

/** Turns a request of the engine into a prompt: what {@link PromptMapper} does, backwards. */
final class RequestMapper {

  private RequestMapper() {}

  /** The prompt; {@code null} if none can say all of the request. */
  static @Nullable Prompt prompt(GenerationRequest request) {
    if (request.rawPrompt() != null
        || !(request.toolChoice() instanceof ToolChoice.Auto)
        || !request.parallelToolCalls()
        || !(request.output() == null || request.output() instanceof OutputConstraint.JsonSchema)
        || hasMedia(request.conversation())) {
      return null;
    }
    return new Prompt(messages(request.conversation().messages()), options(request));
  }

  private static boolean hasMedia(Conversation conversation) {
    return conversation.messages().stream()
        .flatMap(message -> message.content().stream())
        .anyMatch(part -> !(part instanceof ContentPart.Text));
  }

  private static List<org.springframework.ai.chat.messages.Message> messages(
      List<Message> messages) {
    List<org.springframework.ai.chat.messages.Message> mapped = new ArrayList<>(messages.size());
    Queue<AssistantMessage.ToolCall> open = new ArrayDeque<>();
    List<ToolResponse> responses = new ArrayList<>();
    for (Message message : messages) {
      if (message instanceof Message.ToolResult result) {
        responses.add(response(open.poll(), text(result)));
        continue;
      }
      addResponses(mapped, responses);
      switch (message) {
        case Message.Instructions instructions -> mapped.add(new SystemMessage(text(instructions)));
        case Message.User user -> mapped.add(new UserMessage(text(user)));
        case Message.Assistant assistant -> {
          AssistantMessage answer = answer(assistant, mapped.size());
          open.clear();
          open.addAll(answer.getToolCalls());
          mapped.add(answer);
        }
        case Message.ToolResult _ -> throw new IllegalStateException("Not reached");
      }
    }
    addResponses(mapped, responses);
    return mapped;
  }

  private static String text(Message message) {
    return message.content().stream()
        .map(part -> part instanceof ContentPart.Text text ? text.text() : "")
        .collect(Collectors.joining());
  }

  private static AssistantMessage answer(Message.Assistant message, int index) {
    List<AssistantMessage.ToolCall> calls = new ArrayList<>();
    for (ToolCall call : message.toolCalls()) {
      // Other models link results to calls by id; the engine takes calls without one.
      String id = call.id().isEmpty() ? "call_%d_%d".formatted(index, calls.size()) : call.id();
      calls.add(
          new AssistantMessage.ToolCall(id, "function", call.name(), call.arguments().toString()));
    }
    String reasoning = message.reasoning();
    return AssistantMessage.builder()
        .content(text(message))
        .properties(reasoning == null ? Map.of() : Map.of(ChatResponseMapper.REASONING, reasoning))
        .toolCalls(calls)
        .build();
  }

  private static ToolResponse response(AssistantMessage.@Nullable ToolCall call, String text) {
    return call == null
        ? new ToolResponse("", "", text)
        : new ToolResponse(call.id(), call.name(), text);
  }

  private static void addResponses(
      List<org.springframework.ai.chat.messages.Message> mapped, List<ToolResponse> responses) {
    if (!responses.isEmpty()) {
      mapped.add(ToolResponseMessage.builder().responses(List.copyOf(responses)).build());
      responses.clear();
    }
  }

  private static LilyChatOptions options(GenerationRequest request) {
    SamplingOptions sampling = request.sampling();
    List<ToolDefinition> tools = request.conversation().tools();
    return LilyChatOptions.builder()
        .temperature(sampling.temperature())
        .topK(sampling.topK())
        .topP(sampling.topP())
        .minP(sampling.minP())
        .presencePenalty(sampling.presencePenalty())
        .frequencyPenalty(sampling.frequencyPenalty())
        .repetitionPenalty(sampling.repetitionPenalty())
        .logitBias(sampling.logitBias())
        .seed(sampling.seed())
        .maxTokens(request.maxTokens())
        .minTokens(request.minTokens() == 0 ? null : request.minTokens())
        .stopSequences(request.stopStrings().isEmpty() ? null : request.stopStrings())
        .topLogprobs(request.topLogprobs())
        .thinking(request.thinking())
        .preserveThinking(request.preserveThinking() ? true : null)
        .timeout(request.timeout())
        .toolCallbacks(
            tools.isEmpty() ? null : tools.stream().<ToolCallback>map(ShownTool::new).toList())
        .outputSchema(
            request.output() instanceof OutputConstraint.JsonSchema schema
                ? schema.schema().toString()
                : null)
        .build();
  }

  /** A tool that the client runs. */
  private record ShownTool(ToolDefinition tool) implements ToolCallback {
    @Override
    public org.springframework.ai.tool.definition.ToolDefinition getToolDefinition() {
      return org.springframework.ai.tool.definition.ToolDefinition.builder()
          .name(tool.name())
          .description(tool.json().path("function").path("description").asString(""))
          .inputSchema(tool.parameters().toString())
          .build();
    }

    @Override
    public String call(String toolInput) {
      throw new UnsupportedOperationException(
          "Tool '%s' belongs to the client, which runs it itself".formatted(tool.name()));
    }
  }
}
