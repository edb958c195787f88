package dev.lily.spring.openai;

import dev.lily.engine.chat.InvalidConversationException;
import dev.lily.engine.chat.Message;
import dev.lily.engine.chat.MessageReader;
import dev.lily.engine.generation.ContextOverflowException;
import dev.lily.engine.generation.InvalidRequestException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.JsonNodeFactory;
import tools.jackson.databind.node.ObjectNode;

/**
 * The input of a response as messages. Items that belong to one turn of the model, its reasoning,
 * text and calls, become one message. Keeps in mind which item is which message, so that errors can
 * name the item.
 */
final class ResponsesInput {
  private static final String INPUT = "input";
  private static final Pattern CALL =
      Pattern.compile("messages\\[(\\d{1,9})]\\.tool_calls\\[(\\d{1,9})](?:\\.function)?");
  private static final Pattern MESSAGE = Pattern.compile("messages\\[(\\d{1,9})]");

  private final ArrayNode messages = JsonNodeFactory.instance.arrayNode();
  private final List<String> messagePaths = new ArrayList<>();
  private final List<List<String>> callPaths = new ArrayList<>();

  private ResponsesInput() {}

  static ResponsesInput read(FieldReader fields) {
    ResponsesInput input = new ResponsesInput();
    String instructions = fields.string("instructions");
    if (instructions != null) {
      input.add("instructions", "system").put("content", instructions);
    }
    JsonNode items = fields.node(INPUT);
    if (items == null) {
      throw ApiError.invalidValue(INPUT, "input is missing; send a text or an array of items.")
          .exception();
    }
    if (items.isString()) {
      input.add(INPUT, "user").put("content", items.stringValue());
      return input;
    }
    if (!items.isArray()) {
      throw fields.wrongType(INPUT, items, "a string or an array of items");
    }
    for (int i = 0; i < items.size(); i++) {
      input.addItem(FieldReader.of(items.get(i), INPUT + "[" + i + "]"));
    }
    return input;
  }

  /**
   * The messages.
   *
   * @throws ApiException naming the item that is wrong
   */
  List<Message> messages() {
    try {
      return MessageReader.readMessages(messages);
    } catch (InvalidConversationException e) {
      throw wrong(e.path(), e.getMessage());
    }
  }

  /** What went wrong with the messages, in terms of the items. */
  Throwable inWordsOfTheOperation(Throwable failure) {
    return switch (failure) {
      case ContextOverflowException e -> ErrorMapper.contextOverflow(e, INPUT).exception();
      case InvalidRequestException e when e.parameter().equals("output") ->
          ApiError.invalidValue("text.format", String.valueOf(e.getMessage())).exception();
      case InvalidRequestException e when e.parameter().startsWith("messages") ->
          wrong(e.parameter(), e.getMessage());
      case InvalidConversationException e when e.path().startsWith("messages") ->
          wrong(e.path(), e.getMessage());
      default -> failure;
    };
  }

  private ApiException wrong(String path, @Nullable String message) {
    return ApiError.invalidValue(toItems(path), toItems(String.valueOf(message))).exception();
  }

  /** A text may also quote what looks like a path but is none. */
  private String toItems(String text) {
    if (text.equals("messages")) {
      return INPUT;
    }
    String calls =
        CALL.matcher(text)
            .replaceAll(
                match ->
                    Matcher.quoteReplacement(
                        callPath(index(match, 1), index(match, 2)).orElse(match.group())));
    return MESSAGE
        .matcher(calls)
        .replaceAll(
            match ->
                Matcher.quoteReplacement(
                    element(messagePaths, index(match, 1)).orElse(match.group())));
  }

  private static int index(MatchResult match, int group) {
    return Integer.parseInt(match.group(group));
  }

  private Optional<String> callPath(int message, int call) {
    return element(callPaths, message).flatMap(calls -> element(calls, call));
  }

  private static <T> Optional<T> element(List<T> list, int index) {
    return index < list.size() ? Optional.of(list.get(index)) : Optional.empty();
  }

  private void addItem(FieldReader item) {
    String type = item.string("type");
    switch (type == null ? "message" : type) {
      case "message" -> addMessage(item);
      case "reasoning" -> addReasoning(item);
      case "function_call" -> addCall(item);
      case "function_call_output" -> {
        ObjectNode message = add(item.path(), "tool");
        copy(item, "call_id", message, "tool_call_id");
        JsonNode output = item.node("output");
        if (output != null) {
          message.set("content", output);
        }
      }
      case "item_reference" ->
          throw ApiError.unsupported(
                  item.path(),
                  item.path()
                      + " refers to an item that was stored, but this server stores none. Send the item itself.")
              .exception();
      default ->
          throw ApiError.unsupported(
                  item.path("type"),
                  "%s is %s, which is not supported. Use message, reasoning, function_call or function_call_output."
                      .formatted(item.path("type"), Quote.of(String.valueOf(type))))
              .exception();
    }
  }

  private void addMessage(FieldReader item) {
    String role = item.string("role");
    boolean answer = "assistant".equals(role);
    ObjectNode open = answer ? openTurn() : null;
    ObjectNode message =
        open != null && !open.has("content") && !open.has("tool_calls")
            ? open
            : add(item.path(), String.valueOf(role));
    JsonNode content = item.node("content");
    if (content != null) {
      message.set("content", content);
    }
  }

  private void addReasoning(FieldReader item) {
    String text = texts(item, "content");
    add(item.path(), "assistant")
        .put("reasoning_content", text.isEmpty() ? texts(item, "summary") : text);
  }

  private static String texts(FieldReader item, String name) {
    JsonNode parts = item.node(name);
    if (parts == null) {
      return "";
    }
    if (!parts.isArray()) {
      throw item.wrongType(name, parts, "an array of texts");
    }
    StringBuilder joined = new StringBuilder();
    for (int i = 0; i < parts.size(); i++) {
      String text = FieldReader.of(parts.get(i), item.path(name + "[" + i + "]")).string("text");
      joined.append(text == null ? "" : text);
    }
    return joined.toString();
  }

  private void addCall(FieldReader item) {
    ObjectNode open = openTurn();
    ObjectNode message = open != null ? open : add(item.path(), "assistant");
    ObjectNode call = message.withArray("tool_calls").addObject();
    copy(item, "call_id", call, "id");
    ObjectNode function = call.putObject("function");
    copy(item, "name", function, "name");
    copy(item, "arguments", function, "arguments");
    callPaths.getLast().add(item.path());
  }

  private static void copy(FieldReader item, String name, ObjectNode to, String newName) {
    String value = item.string(name);
    if (value != null) {
      to.put(newName, value);
    }
  }

  /** The model's turn, if the last message is one. */
  private @Nullable ObjectNode openTurn() {
    if (messages.isEmpty()) {
      return null;
    }
    ObjectNode last = (ObjectNode) messages.get(messages.size() - 1);
    return last.path("role").stringValue().equals("assistant") ? last : null;
  }

  private ObjectNode add(String path, String role) {
    messagePaths.add(path);
    callPaths.add(new ArrayList<>());
    return messages.addObject().put("role", role);
  }
}
