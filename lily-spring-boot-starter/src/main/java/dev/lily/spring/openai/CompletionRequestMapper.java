package dev.lily.spring.openai;

import dev.lily.engine.chat.Conversation;
import dev.lily.engine.chat.Message;
import dev.lily.engine.chat.MessageReader;
import dev.lily.engine.chat.ToolDefinition;
import dev.lily.engine.generation.GenerationRequest;
import dev.lily.engine.sampling.SamplingOptions;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;

/**
 * Maps the body of a chat completion to requests of the engine. What it cannot honour it refuses,
 * naming the field; fields it does not know, and {@code user}, {@code metadata}, {@code store} and
 * their like, which do not change the answer, are ignored. Immutable and thread-safe.
 */
final class CompletionRequestMapper {
  /** As many as OpenAI takes, although the engine would take more. */
  static final int MAX_STOP_STRINGS = 4;

  /** Fields that would change the answer if this endpoint could honour them. */
  private static final List<String> UNSUPPORTED =
      List.of("functions", "function_call", "audio", "web_search_options");

  /** Golden ratio in 64 bits, so that the seeds of neighbours share no bits. */
  private static final long SEED_STEP = 0x9E3779B97F4A7C15L;

  private final String model;
  private final Set<String> modelNames;
  private final int maxChoices;
  private final OpenAiOptions.Defaults defaults;

  /**
   * @param model name of the loaded model
   */
  CompletionRequestMapper(String model, OpenAiOptions options) {
    this.model = model;
    List<String> names = new ArrayList<>(options.modelAliases());
    names.add(model);
    modelNames = Set.copyOf(names);
    maxChoices = options.maxChoices();
    defaults = options.defaults();
  }

  /**
   * Maps a body. Renders and tokenises nothing yet, so that the engine may still refuse the result.
   *
   * @throws ApiException if a field has the wrong type or a value that is not supported
   * @throws RuntimeException one of the engine's exceptions if its rules are broken
   */
  CompletionRequest map(JsonNode body) {
    FieldReader fields = FieldReader.of(body);
    checkModel(fields);
    checkUnsupported(fields);
    boolean stream = fields.isTrue("stream");
    boolean includeUsage = fields.object("stream_options").isTrue("include_usage");
    int n = choices(fields);
    SamplingOptions sampling = sampling(fields);
    List<GenerationRequest> choices = new ArrayList<>(n);
    GenerationRequest.Builder builder = request(fields);
    for (int i = 0; i < n; i++) {
      choices.add(builder.sampling(seeded(sampling, i)).build());
    }
    return new CompletionRequest(choices, stream, includeUsage);
  }

  private void checkModel(FieldReader fields) {
    String asked = fields.string("model");
    if (asked != null && !asked.isEmpty() && !modelNames.contains(asked)) {
      throw ApiError.modelNotFound(asked, model).exception();
    }
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

  private int choices(FieldReader fields) {
    Integer n = fields.integer("n");
    if (n == null) {
      return 1;
    }
    if (n < 1 || n > maxChoices) {
      throw ApiError.invalidValue("n", "n is %d; it must be from 1 to %d.".formatted(n, maxChoices))
          .exception();
    }
    return n;
  }

  private GenerationRequest.Builder request(FieldReader fields) {
    Boolean preserveThinking = fields.object("chat_template_kwargs").bool("preserve_thinking");
    Integer maxTokens = maxTokens(fields);
    List<Message> messages = MessageReader.readMessages(fields.node("messages"));
    List<ToolDefinition> tools = tools(fields);
    ToolUse use = ToolUse.read(fields, tools);
    return GenerationRequest.builder(new Conversation(messages, use.visible() ? tools : List.of()))
        .output(ResponseFormatReader.read(fields))
        .toolChoice(use.choice())
        .parallelToolCalls(use.parallel())
        .thinking(thinking(fields))
        .preserveThinking(preserveThinking == null ? defaults.preserveThinking() : preserveThinking)
        .maxTokens(maxTokens)
        .minTokens(minTokens(fields, maxTokens))
        .stopStrings(stopStrings(fields))
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

  private @Nullable Boolean thinking(FieldReader fields) {
    Boolean enabled = fields.object("chat_template_kwargs").bool("enable_thinking");
    String effort = fields.string("reasoning_effort");
    Boolean wanted =
        switch (effort) {
          case null -> null;
          case "none" -> false;
          case "minimal", "low", "medium", "high", "xhigh" -> true;
          default ->
              throw ApiError.invalidValue(
                      "reasoning_effort",
                      "reasoning_effort is %s; it must be none, minimal, low, medium, high or xhigh."
                          .formatted(Quote.of(effort)))
                  .exception();
        };
    if (enabled != null) {
      return enabled;
    }
    return wanted != null ? wanted : defaults.thinking();
  }

  /** {@code max_completion_tokens} is the newer name and wins. */
  private @Nullable Integer maxTokens(FieldReader fields) {
    Integer older = atLeastOne(fields, "max_tokens");
    Integer newer = atLeastOne(fields, "max_completion_tokens");
    if (newer != null) {
      return newer;
    }
    return older != null ? older : defaults.maxTokens();
  }

  /** The default gives way to a lower limit. */
  private int minTokens(FieldReader fields, @Nullable Integer maxTokens) {
    Integer asked = fields.integer("min_tokens");
    if (asked != null) {
      return asked;
    }
    return maxTokens == null ? defaults.minTokens() : Math.min(defaults.minTokens(), maxTokens);
  }

  private static @Nullable Integer atLeastOne(FieldReader fields, String name) {
    Integer value = fields.integer(name);
    if (value != null && value < 1) {
      throw ApiError.invalidValue(name, "%s is %d; it must be at least 1.".formatted(name, value))
          .exception();
    }
    return value;
  }

  private List<String> stopStrings(FieldReader fields) {
    List<String> stop = fields.strings("stop");
    if (stop == null) {
      return defaults.stopStrings();
    }
    if (stop.size() > MAX_STOP_STRINGS) {
      throw ApiError.invalidValue(
              "stop",
              "stop has %d texts; at most %d are allowed.".formatted(stop.size(), MAX_STOP_STRINGS))
          .exception();
    }
    return stop;
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

  private static SamplingOptions sampling(FieldReader fields) {
    return SamplingOptions.builder()
        .temperature(fields.decimal("temperature"))
        .topP(fields.decimal("top_p"))
        .topK(fields.integer("top_k"))
        .minP(fields.decimal("min_p"))
        .presencePenalty(fields.decimal("presence_penalty"))
        .frequencyPenalty(fields.decimal("frequency_penalty"))
        .repetitionPenalty(fields.decimal("repetition_penalty"))
        .logitBias(LogitBiasReader.read(fields))
        .seed(fields.longInteger("seed"))
        .build();
  }

  /**
   * Gives each choice a seed of its own if there is one; the first keeps it, so that it is the
   * answer to the same request with one choice.
   */
  private SamplingOptions seeded(SamplingOptions sampling, int choice) {
    Long seed = sampling.seed() != null ? sampling.seed() : defaults.seed();
    if (seed == null || choice == 0) {
      return sampling;
    }
    return SamplingOptions.builder().seed(seed + choice * SEED_STEP).build().orElse(sampling);
  }
}
