package dev.lily.spring.ai;

import dev.lily.engine.chat.ContentPart;
import dev.lily.engine.chat.Message;
import dev.lily.engine.chat.ToolCall;
import dev.lily.engine.generation.InvalidRequestException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.ai.chat.messages.AssistantMessage;
import org.springframework.ai.chat.messages.ToolResponseMessage;
import org.springframework.ai.chat.messages.ToolResponseMessage.ToolResponse;
import org.springframework.ai.content.MediaContent;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

/** Turns Spring AI's messages into the engine's, in order, or refuses with the message's path. */
final class MessageMapper {

  private MessageMapper() {}

  /**
   * Maps a conversation. Tool responses are put in the order of the calls they answer, because the
   * chat template joins them by order alone.
   *
   * @throws InvalidRequestException naming the offending message
   */
  static List<Message> map(List<org.springframework.ai.chat.messages.Message> messages) {
    List<Message> mapped = new ArrayList<>(messages.size());
    List<ToolResponse> responses = new ArrayList<>();
    List<AssistantMessage.ToolCall> calls = List.of();
    for (int i = 0; i < messages.size(); i++) {
      String path = "messages[" + i + "]";
      org.springframework.ai.chat.messages.Message message = messages.get(i);
      if (message instanceof ToolResponseMessage tool) {
        responses.addAll(tool.getResponses());
        continue;
      }
      addResponses(mapped, responses, calls);
      refuseMedia(message, path);
      switch (message.getMessageType()) {
        case SYSTEM -> mapped.add(new Message.Instructions(text(message)));
        case USER -> mapped.add(new Message.User(text(message)));
        case ASSISTANT -> {
          calls = message instanceof AssistantMessage own ? own.getToolCalls() : List.of();
          mapped.add(
              new Message.Assistant(
                  List.of(new ContentPart.Text(text(message))),
                  reasoning(message),
                  toolCalls(calls, path)));
        }
        case TOOL ->
            throw new InvalidRequestException(
                path,
                path
                    + " has type TOOL but is a "
                    + message.getClass().getName()
                    + "; tool results must be ToolResponseMessages");
      }
    }
    addResponses(mapped, responses, calls);
    return mapped;
  }

  private static String text(org.springframework.ai.chat.messages.Message message) {
    String text = message.getText();
    return text == null ? "" : text;
  }

  private static @Nullable String reasoning(org.springframework.ai.chat.messages.Message message) {
    return message.getMetadata().get(ChatResponseMapper.REASONING) instanceof String reasoning
        ? reasoning
        : null;
  }

  private static void refuseMedia(
      org.springframework.ai.chat.messages.Message message, String path) {
    if (message instanceof MediaContent content && !content.getMedia().isEmpty()) {
      throw new InvalidRequestException(
          path + ".media",
          "%s has %d media of type %s; Lily reads text only. Describe them in text."
              .formatted(
                  path, content.getMedia().size(), content.getMedia().getFirst().getMimeType()));
    }
  }

  private static List<ToolCall> toolCalls(List<AssistantMessage.ToolCall> calls, String path) {
    List<ToolCall> mapped = new ArrayList<>(calls.size());
    for (int i = 0; i < calls.size(); i++) {
      AssistantMessage.ToolCall call = calls.get(i);
      String callPath = path + ".toolCalls[" + i + "].arguments";
      mapped.add(new ToolCall(call.id(), call.name(), object(call.arguments(), callPath)));
    }
    return mapped;
  }

  private static void addResponses(
      List<Message> mapped, List<ToolResponse> responses, List<AssistantMessage.ToolCall> calls) {
    if (responses.size() > 1) {
      List<String> order = calls.stream().map(AssistantMessage.ToolCall::id).toList();
      List<String> ids = responses.stream().map(ToolResponse::id).toList();
      if (order.containsAll(ids)
          && new HashSet<>(order).size() == order.size()
          && new HashSet<>(ids).size() == ids.size()) {
        responses.sort(Comparator.comparingInt(response -> order.indexOf(response.id())));
      }
    }
    for (ToolResponse response : responses) {
      mapped.add(new Message.ToolResult(response.responseData()));
    }
    responses.clear();
  }

  /**
   * Reads a JSON object; blank text is an empty one.
   *
   * @throws InvalidRequestException naming {@code path} if the text is anything else
   */
  static ObjectNode object(@Nullable String json, String path) {
    if (json == null || json.isBlank()) {
      return JsonMapper.shared().createObjectNode();
    }
    JsonNode node;
    try {
      node = JsonMapper.shared().readTree(json);
    } catch (JacksonException e) {
      throw new InvalidRequestException(
          path, path + " is not JSON: " + e.getOriginalMessage() + ". Give a JSON object.", e);
    }
    if (node instanceof ObjectNode object) {
      return object;
    }
    throw new InvalidRequestException(
        path, path + " is a JSON " + node.getNodeType() + "; it must be a JSON object");
  }
}
