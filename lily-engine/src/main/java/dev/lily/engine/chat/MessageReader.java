package dev.lily.engine.chat;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.SortedMap;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.core.exc.StreamConstraintsException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.JsonNodeFactory;
import tools.jackson.databind.node.ObjectNode;

/**
 * Reads messages in the JSON form that chat templates and the OpenAI API share: {@code role},
 * {@code content}, {@code reasoning_content}, {@code tool_calls}, {@code tool_call_id}. Fields that
 * the template does not read, such as {@code name}, are ignored.
 *
 * <ul>
 *   <li>Role {@code developer} is read as {@code system}.
 *   <li>{@code content} is a string, a list of parts, or {@code null}, which is empty. Only an
 *       assistant message may lack it.
 *   <li>A part is an image if it has a key {@code image} or {@code image_url} or one of these
 *       types, a video if it has the key or type {@code video}, else text if it has a string {@code
 *       text}.
 *   <li>A tool call is {@code {"function": {…}}} or the bare function. Its {@code arguments} are an
 *       object or an object's JSON text; absent, {@code null} and blank text mean {@code {}}.
 *   <li>Results that name all their calls by different ids are put in the order of the calls: in
 *       the template nothing else joins them.
 * </ul>
 */
public final class MessageReader {
  private static final JsonMapper JSON = JsonMapper.shared();
  private static final int LONGEST_QUOTE = 40;

  private MessageReader() {}

  /**
   * Reads messages.
   *
   * @param messages a JSON array
   * @throws InvalidConversationException with the path of the offending element, for example {@code
   *     messages[1].content[0]}
   */
  public static List<Message> readMessages(@Nullable JsonNode messages) {
    if (messages == null || isAbsent(messages) || (messages.isArray() && messages.isEmpty())) {
      throw new InvalidConversationException(
          "messages", "No messages provided. Send at least one user message.");
    }
    if (!messages.isArray()) {
      throw wrongType("messages", messages, "an array of messages");
    }
    List<Message> read = new ArrayList<>(messages.size());
    for (int i = 0; i < messages.size(); i++) {
      read.add(readMessage(messages.get(i), "messages[" + i + "]"));
    }
    for (int i = 0; i < read.size(); i++) {
      if (read.get(i) instanceof Message.Assistant answer && answer.toolCalls().size() > 1) {
        orderResults(read, i + 1, answer.toolCalls(), messages);
      }
    }
    return List.copyOf(read);
  }

  /**
   * Reads tool definitions.
   *
   * @param tools a JSON array in OpenAI form, or null
   * @throws InvalidConversationException with the path of the offending element
   */
  public static List<ToolDefinition> readTools(@Nullable JsonNode tools) {
    if (tools == null || isAbsent(tools)) {
      return List.of();
    }
    if (!tools.isArray()) {
      throw wrongType("tools", tools, "an array of tools");
    }
    List<ToolDefinition> read = new ArrayList<>(tools.size());
    for (int i = 0; i < tools.size(); i++) {
      read.add(readTool(tools.get(i), "tools[" + i + "]"));
    }
    return List.copyOf(read);
  }

  /** Orders the results from {@code start} on as the calls that they answer. */
  private static void orderResults(
      List<Message> read, int start, List<ToolCall> calls, JsonNode messages) {
    List<String> order = calls.stream().map(ToolCall::id).toList();
    SortedMap<Integer, Message> results = new TreeMap<>();
    int end = start;
    while (end < read.size() && read.get(end) instanceof Message.ToolResult) {
      String id = messages.get(end).path("tool_call_id").asString("");
      int call = order.indexOf(id);
      if (call < 0 || call != order.lastIndexOf(id) || results.put(call, read.get(end)) != null) {
        return;
      }
      end++;
    }
    int next = start;
    for (Message result : results.values()) {
      read.set(next++, result);
    }
  }

  private static Message readMessage(JsonNode message, String path) {
    if (!message.isObject()) {
      throw wrongType(path, message, "a message object");
    }
    JsonNode role = message.path("role");
    String name = role.isString() ? role.stringValue() : "";
    return switch (name) {
      case "system", "developer" -> new Message.Instructions(readContent(message, path));
      case "user" -> new Message.User(readContent(message, path));
      case "assistant" -> readAnswer(message, path);
      case "tool" -> new Message.ToolResult(readContent(message, path));
      default ->
          throw new InvalidConversationException(
              path + ".role",
              "Unexpected message role. %s is %s; use system, developer, user, assistant or tool."
                  .formatted(path + ".role", describe(role)));
    };
  }

  private static Message.Assistant readAnswer(JsonNode message, String path) {
    List<ContentPart> content = message.has("content") ? readContent(message, path) : List.of();
    JsonNode reasoning = message.path("reasoning_content");
    if (!isAbsent(reasoning) && !reasoning.isString()) {
      throw wrongType(path + ".reasoning_content", reasoning, "a string or null");
    }
    JsonNode calls = message.path("tool_calls");
    if (!isAbsent(calls) && !calls.isArray()) {
      throw wrongType(path + ".tool_calls", calls, "an array of tool calls");
    }
    List<ToolCall> read = new ArrayList<>(calls.size());
    for (int j = 0; j < calls.size(); j++) {
      read.add(readCall(calls.get(j), path + ".tool_calls[" + j + "]"));
    }
    return new Message.Assistant(
        content, reasoning.isString() ? reasoning.stringValue() : null, read);
  }

  private static List<ContentPart> readContent(JsonNode message, String messagePath) {
    String path = messagePath + ".content";
    JsonNode content = message.path("content");
    if (content.isMissingNode()) {
      throw new InvalidConversationException(
          path, "%s is missing. Send a string, a list of parts, or null.".formatted(path));
    }
    if (content.isNull()) {
      return List.of();
    }
    if (content.isString()) {
      return List.of(new ContentPart.Text(content.stringValue()));
    }
    if (!content.isArray()) {
      throw new InvalidConversationException(
          path,
          "Unexpected content type. %s is %s; send a string, a list of parts, or null."
              .formatted(path, describe(content)));
    }
    List<ContentPart> parts = new ArrayList<>(content.size());
    for (int j = 0; j < content.size(); j++) {
      parts.add(readPart(content.get(j), path + "[" + j + "]"));
    }
    return parts;
  }

  private static ContentPart readPart(JsonNode part, String path) {
    String type = part.path("type").isString() ? part.path("type").stringValue() : "";
    if (part.has("image")
        || part.has("image_url")
        || type.equals("image")
        || type.equals("image_url")) {
      return new ContentPart.Image();
    }
    if (part.has("video") || type.equals("video")) {
      return new ContentPart.Video();
    }
    if (part.has("text")) {
      JsonNode text = part.path("text");
      if (!text.isString()) {
        throw wrongType(path + ".text", text, "a string");
      }
      return new ContentPart.Text(text.stringValue());
    }
    throw new InvalidConversationException(
        path,
        "Unexpected item type in content. %s is %s; send {\"type\":\"text\",\"text\":\"…\"}."
            .formatted(path, part.isObject() ? "a part of type " + quote(type) : describe(part)));
  }

  private static ToolCall readCall(JsonNode call, String path) {
    if (!call.isObject()) {
      throw wrongType(path, call, "a tool call object");
    }
    JsonNode id = call.path("id");
    if (!isAbsent(id) && !id.isString()) {
      throw wrongType(path + ".id", id, "a string");
    }
    boolean bare = !call.has("function");
    JsonNode function = bare ? call : call.path("function");
    String functionPath = bare ? path : path + ".function";
    if (!function.isObject()) {
      throw wrongType(functionPath, function, "an object with name and arguments");
    }
    JsonNode name = function.path("name");
    if (!name.isString()) {
      throw wrongType(functionPath + ".name", name, "a string");
    }
    return new ToolCall(
        id.isString() ? id.stringValue() : "",
        name.stringValue(),
        readArguments(function.path("arguments"), functionPath + ".arguments"));
  }

  private static ObjectNode readArguments(JsonNode arguments, String path) {
    if (arguments instanceof ObjectNode object) {
      return object;
    }
    if (isAbsent(arguments)) {
      return JsonNodeFactory.instance.objectNode();
    }
    if (!arguments.isString()) {
      throw notAMapping(path, describe(arguments));
    }
    String text = arguments.stringValue();
    if (PythonWhitespace.isBlank(text)) {
      return JsonNodeFactory.instance.objectNode();
    }
    JsonNode parsed;
    try {
      parsed = JSON.readTree(text);
    } catch (StreamConstraintsException _) {
      throw new InvalidConversationException(
          path,
          "%s is nested too deep or holds too long a number or key. Send a simpler object."
              .formatted(path));
    } catch (JacksonException e) {
      throw new InvalidConversationException(
          path,
          "%s is not valid JSON at line %d, column %d. Send an object or its complete JSON text."
              .formatted(path, e.getLocation().getLineNr(), e.getLocation().getColumnNr()));
    }
    if (parsed instanceof ObjectNode object) {
      return object;
    }
    throw notAMapping(path, "the JSON text of " + describe(parsed));
  }

  private static ToolDefinition readTool(JsonNode tool, String path) {
    if (!(tool instanceof ObjectNode definition)) {
      throw wrongType(path, tool, "an object");
    }
    JsonNode type = definition.path("type");
    if (!isAbsent(type) && !(type.isString() && type.stringValue().equals("function"))) {
      throw new InvalidConversationException(
          path + ".type",
          "%s is %s; only \"function\" is supported.".formatted(path + ".type", describe(type)));
    }
    JsonNode function = definition.path("function");
    if (!function.isObject()) {
      throw wrongType(path + ".function", function, "an object with name and parameters");
    }
    if (!function.path("name").isString()) {
      throw wrongType(path + ".function.name", function.path("name"), "a string");
    }
    JsonNode parameters = function.path("parameters");
    if (!isAbsent(parameters) && !parameters.isObject()) {
      throw wrongType(path + ".function.parameters", parameters, "a JSON schema object");
    }
    return new ToolDefinition(definition);
  }

  private static boolean isAbsent(JsonNode node) {
    return node.isMissingNode() || node.isNull();
  }

  private static InvalidConversationException notAMapping(String path, String found) {
    return new InvalidConversationException(
        path,
        "Can only get item pairs from a mapping. %s is %s; send an object or its JSON text."
            .formatted(path, found));
  }

  private static InvalidConversationException wrongType(String path, JsonNode found, String rule) {
    return new InvalidConversationException(
        path, "%s is %s; it must be %s.".formatted(path, describe(found), rule));
  }

  private static String describe(JsonNode node) {
    return switch (node.getNodeType()) {
      case STRING -> quote(node.stringValue());
      case ARRAY -> "an array";
      case OBJECT -> "an object";
      case MISSING -> "missing";
      case NULL -> "null";
      case NUMBER -> "a number";
      case BOOLEAN -> "a boolean";
      case BINARY, POJO -> "a " + node.getNodeType().name().toLowerCase(Locale.ROOT) + " node";
    };
  }

  private static String quote(String text) {
    boolean whole = text.length() <= LONGEST_QUOTE;
    return '"' + (whole ? text : text.substring(0, LONGEST_QUOTE) + "…") + '"';
  }
}
