package dev.lily.spring.openai;

import dev.lily.engine.chat.Conversation;
import dev.lily.engine.chat.MessageReader;
import dev.lily.engine.chat.ToolDefinition;
import dev.lily.engine.generation.GenerationRequest;
import java.util.List;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.JsonNodeFactory;
import tools.jackson.databind.node.ObjectNode;

/**
 * Maps the body of a response to a request of the engine, by the rules of {@link
 * CompletionRequestMapper}. Nothing is stored, so what needs a stored response is refused.
 * Immutable and thread-safe.
 */
final class ResponsesRequestMapper {
  private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

  /** Fields that need a stored response, or a server that has more than a model. */
  private static final List<String> UNSUPPORTED =
      List.of("previous_response_id", "conversation", "prompt", "context_management");

  private final CommonFields common;

  ResponsesRequestMapper(String model, OpenAiOptions options) {
    common = new CommonFields(model, options);
  }

  ResponsesRequest map(FieldReader fields) {
    common.checkModel(fields);
    checkUnsupported(fields);
    ResponsesInput input = ResponsesInput.read(fields);
    FieldReader reasoning = fields.object("reasoning");
    Integer maxTokens = CommonFields.atLeastOne(fields, "max_output_tokens");
    GenerationRequest request = request(fields, input, reasoning, maxTokens);
    Double temperature = fields.decimal("temperature");
    ResponsesRequest.Repeated repeated =
        new ResponsesRequest.Repeated(
            fields.string("instructions"),
            maxTokens,
            reasoning.string("effort"),
            summary(reasoning),
            temperature,
            fields.decimal("top_p"),
            orElse(fields.node("tool_choice"), JSON.stringNode("auto")),
            orElse(fields.node("tools"), JSON.arrayNode()),
            orElse(fields.node("metadata"), JSON.objectNode()),
            orElse(fields.object("text").node("format"), JSON.objectNode().put("type", "text")));
    return new ResponsesRequest(request, input, fields.isTrue("stream"), repeated);
  }

  private static JsonNode orElse(@Nullable JsonNode sent, JsonNode otherwise) {
    return sent == null ? otherwise : sent;
  }

  private GenerationRequest request(
      FieldReader fields,
      ResponsesInput input,
      FieldReader reasoning,
      @Nullable Integer maxTokens) {
    Integer limit = maxTokens == null ? common.defaults().maxTokens() : maxTokens;
    Boolean preserve = fields.object("chat_template_kwargs").bool("preserve_thinking");
    List<ToolDefinition> tools = MessageReader.readTools(tools(fields));
    ToolUse use = ToolUse.read(toolUse(fields), tools);
    return GenerationRequest.builder(
            new Conversation(input.messages(), use.visible() ? tools : List.of()))
        .output(ResponseFormatReader.ofResponse(fields))
        .toolChoice(use.choice())
        .parallelToolCalls(use.parallel())
        .thinking(common.thinking(fields, reasoning, "effort"))
        .preserveThinking(preserve == null ? common.defaults().preserveThinking() : preserve)
        .sampling(CommonFields.sampling(fields))
        .maxTokens(limit)
        .minTokens(common.minTokens(fields, limit))
        .stopStrings(common.stopStrings(fields))
        .timeout(common.defaults().timeout())
        .build();
  }

  private static void checkUnsupported(FieldReader fields) {
    for (String name : UNSUPPORTED) {
      if (fields.has(name)) {
        throw ApiError.unsupported(
                name, name + " is not supported: this server stores nothing. Send the whole input.")
            .exception();
      }
    }
    if (fields.isTrue("store")) {
      throw ApiError.unsupported(
              "store", "store can only be false: this server stores no responses.")
          .exception();
    }
    if (fields.isTrue("background")) {
      throw ApiError.unsupported(
              "background", "background can only be false: this server stores no responses.")
          .exception();
    }
    String truncation = fields.string("truncation");
    if (truncation != null && !truncation.equals("disabled")) {
      throw ApiError.unsupported(
              "truncation", "truncation can only be \"disabled\": nothing is left out silently.")
          .exception();
    }
    Integer topLogprobs = fields.integer("top_logprobs");
    if (topLogprobs != null && topLogprobs != 0) {
      throw ApiError.unsupported(
              "top_logprobs",
              "top_logprobs is not supported here; use chat/completions for log-probabilities.")
          .exception();
    }
    List<String> include = fields.strings("include");
    if (include != null && include.contains("message.output_text.logprobs")) {
      throw ApiError.unsupported(
              "include", "Log-probabilities are not supported here; use chat/completions for them.")
          .exception();
    }
  }

  private static @Nullable String summary(FieldReader reasoning) {
    String summary = reasoning.string("summary");
    return summary != null ? summary : reasoning.string("generate_summary");
  }

  /** The tools in the form of chat completions, where the function is an object of its own. */
  private static @Nullable JsonNode tools(FieldReader fields) {
    JsonNode tools = fields.node("tools");
    if (tools == null || !tools.isArray()) {
      return tools;
    }
    ArrayNode nested = JSON.arrayNode();
    for (int i = 0; i < tools.size(); i++) {
      FieldReader tool = FieldReader.of(tools.get(i), "tools[" + i + "]");
      String type = tool.string("type");
      if (!"function".equals(type)) {
        throw ApiError.unsupported(
                tool.path("type"),
                "%s is %s; this server has no tools of its own and takes functions only."
                    .formatted(tool.path("type"), Quote.of(String.valueOf(type))))
            .exception();
      }
      String name = tool.string("name");
      if (name == null || name.isBlank()) {
        throw ApiError.invalidValue(
                tool.path("name"), tool.path("name") + " is missing; give the function a name.")
            .exception();
      }
      ObjectNode function = nested.addObject().put("type", type).putObject("function");
      function.put("name", name);
      for (String field : List.of("description", "parameters")) {
        JsonNode value = tool.node(field);
        if (value != null) {
          function.set(field, value);
        }
      }
    }
    return nested;
  }

  /** The choice and the limit of calls in the form of chat completions. */
  private static FieldReader toolUse(FieldReader fields) {
    JsonNode choice = fields.node("tool_choice");
    ObjectNode nested = JSON.objectNode();
    nested.set("parallel_tool_calls", fields.node("parallel_tool_calls"));
    if (choice instanceof ObjectNode flat && flat.has("name")) {
      ObjectNode named = nested.putObject("tool_choice");
      named.set("type", flat.path("type"));
      named.putObject("function").set("name", flat.path("name"));
    } else if (choice != null) {
      nested.set("tool_choice", choice);
    }
    return FieldReader.of(nested);
  }
}
