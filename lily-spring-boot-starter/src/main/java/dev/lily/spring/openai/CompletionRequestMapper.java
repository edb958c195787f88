package dev.lily.spring.openai;

import dev.lily.engine.chat.Conversation;
import dev.lily.engine.chat.Message;
import dev.lily.engine.chat.MessageReader;
import dev.lily.engine.chat.ToolDefinition;
import dev.lily.engine.generation.GenerationRequest;
import dev.lily.engine.sampling.SamplingOptions;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Maps the body of a chat completion to requests of the engine. What it cannot honour it refuses,
 * naming the field; fields it does not know, and {@code user}, {@code metadata}, {@code store} and
 * their like, which do not change the answer, are ignored. Immutable and thread-safe.
 */
final class CompletionRequestMapper {
  /** Fields that would change the answer if this endpoint could honour them. */
  private static final List<String> UNSUPPORTED =
      List.of("functions", "function_call", "audio", "web_search_options");

  private final CommonFields common;
  private final OpenAiOptions.Defaults defaults;

  /**
   * @param model name of the loaded model
   */
  CompletionRequestMapper(String model, OpenAiOptions options) {
    common = new CommonFields(model, options);
    defaults = options.defaults();
  }

  /**
   * Maps a body. Renders and tokenises nothing yet, so that the engine may still refuse the result.
   *
   * @throws ApiException if a field has the wrong type or a value that is not supported
   * @throws RuntimeException one of the engine's exceptions if its rules are broken
   */
  CompletionRequest map(FieldReader fields) {
    common.checkModel(fields);
    checkUnsupported(fields);
    boolean stream = fields.isTrue("stream");
    boolean includeUsage = fields.object("stream_options").isTrue("include_usage");
    int n = common.choices(fields);
    SamplingOptions sampling = CommonFields.sampling(fields);
    List<GenerationRequest> choices = new ArrayList<>(n);
    GenerationRequest.Builder builder = request(fields);
    for (int i = 0; i < n; i++) {
      choices.add(builder.sampling(common.seeded(sampling, i)).build());
    }
    return new CompletionRequest(choices, stream, includeUsage);
  }

  private static void checkUnsupported(FieldReader fields) {
    for (String name : UNSUPPORTED) {
      if (fields.has(name)) {
        String instead =
            name.startsWith("function") ? " Use tools and tool_choice." : " Leave it out.";
        throw ApiError.unsupported(name, name + " is not supported." + instead).exception();
      }
    }
    List<String> modalities = fields.strings("modalities");
    if (modalities != null && !modalities.equals(List.of("text"))) {
      throw ApiError.unsupported(
              "modalities", "This model writes text only; leave modalities out or send [\"text\"].")
          .exception();
    }
  }

  private GenerationRequest.Builder request(FieldReader fields) {
    Boolean preserveThinking = fields.object("chat_template_kwargs").bool("preserve_thinking");
    Integer maxTokens = maxTokens(fields);
    List<Message> messages = MessageReader.readMessages(fields.node("messages"));
    List<ToolDefinition> tools = tools(fields);
    ToolUse use = ToolUse.read(fields, tools);
    return GenerationRequest.builder(new Conversation(messages, use.visible() ? tools : List.of()))
        .output(ResponseFormatReader.ofChat(fields))
        .toolChoice(use.choice())
        .parallelToolCalls(use.parallel())
        .thinking(common.thinking(fields, fields, "reasoning_effort"))
        .preserveThinking(preserveThinking == null ? defaults.preserveThinking() : preserveThinking)
        .maxTokens(maxTokens)
        .minTokens(common.minTokens(fields, maxTokens))
        .stopStrings(common.stopStrings(fields))
        .topLogprobs(topLogprobs(fields))
        .timeout(defaults.timeout());
  }

  private static List<ToolDefinition> tools(FieldReader fields) {
    List<ToolDefinition> tools = MessageReader.readTools(fields.node("tools"));
    for (int i = 0; i < tools.size(); i++) {
      if (tools.get(i).name().isBlank()) {
        String path = "tools[%d].function.name".formatted(i);
        throw ApiError.invalidValue(path, path + " is empty; give the function a name.")
            .exception();
      }
    }
    return tools;
  }

  /** {@code max_completion_tokens} is the newer name and wins. */
  private @Nullable Integer maxTokens(FieldReader fields) {
    Integer older = CommonFields.atLeastOne(fields, "max_tokens");
    Integer newer = CommonFields.atLeastOne(fields, "max_completion_tokens");
    if (newer != null) {
      return newer;
    }
    return older != null ? older : defaults.maxTokens();
  }

  private static @Nullable Integer topLogprobs(FieldReader fields) {
    boolean wanted = fields.isTrue("logprobs");
    Integer top = fields.integer("top_logprobs");
    if (wanted) {
      return top == null ? 0 : top;
    }
    if (top != null && top != 0) {
      throw ApiError.invalidValue(
              "top_logprobs", "top_logprobs is %d; it needs logprobs to be true.".formatted(top))
          .exception();
    }
    return null;
  }
}
