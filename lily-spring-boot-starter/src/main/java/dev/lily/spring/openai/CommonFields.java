package dev.lily.spring.openai;

import dev.lily.engine.sampling.SamplingOptions;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Reads what the operations' requests have in common. Immutable and thread-safe. */
final class CommonFields {
  /** As many as OpenAI takes, although the engine would take more. */
  static final int MAX_STOP_STRINGS = 4;

  /** Golden ratio in 64 bits, so that the seeds of neighbours share no bits. */
  private static final long SEED_STEP = 0x9E3779B97F4A7C15L;

  private final String model;
  private final Set<String> modelNames;
  private final int maxChoices;
  private final OpenAiOptions.Defaults defaults;

  /**
   * @param model name of the loaded model
   */
  CommonFields(String model, OpenAiOptions options) {
    this.model = model;
    List<String> names = new ArrayList<>(options.modelAliases());
    names.add(model);
    modelNames = Set.copyOf(names);
    maxChoices = options.maxChoices();
    defaults = options.defaults();
  }

  /** What requests leave unsaid. */
  OpenAiOptions.Defaults defaults() {
    return defaults;
  }

  int maxChoices() {
    return maxChoices;
  }

  /** Refuses a model that is not the loaded one; none, or an empty name, is the loaded one. */
  void checkModel(FieldReader fields) {
    String asked = fields.string("model");
    if (asked != null && !asked.isEmpty() && !modelNames.contains(asked)) {
      throw ApiError.modelNotFound(asked, model).exception();
    }
  }

  /** The number of choices, {@code n}. */
  int choices(FieldReader fields) {
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

  /**
   * Whether the model reasons first: the template's own switch, then the effort, then the default.
   *
   * @param parent the object that has the effort
   * @param name of the effort
   */
  @Nullable Boolean thinking(FieldReader fields, FieldReader parent, String name) {
    Boolean enabled = fields.object("chat_template_kwargs").bool("enable_thinking");
    String effort = parent.string(name);
    Boolean wanted =
        switch (effort) {
          case null -> null;
          case "none" -> false;
          case "minimal", "low", "medium", "high", "xhigh" -> true;
          default ->
              throw ApiError.invalidValue(
                      parent.path(name),
                      "%s is %s; it must be none, minimal, low, medium, high or xhigh."
                          .formatted(parent.path(name), Quote.of(effort)))
                  .exception();
        };
    if (enabled != null) {
      return enabled;
    }
    return wanted != null ? wanted : defaults.thinking();
  }

  /** The default gives way to a lower limit. */
  int minTokens(FieldReader fields, @Nullable Integer maxTokens) {
    Integer asked = fields.integer("min_tokens");
    if (asked != null) {
      return asked;
    }
    return maxTokens == null ? defaults.minTokens() : Math.min(defaults.minTokens(), maxTokens);
  }

  /** A count; {@code null} if absent. */
  static @Nullable Integer atLeastOne(FieldReader fields, String name) {
    Integer value = fields.integer(name);
    if (value != null && value < 1) {
      throw ApiError.invalidValue(name, "%s is %d; it must be at least 1.".formatted(name, value))
          .exception();
    }
    return value;
  }

  List<String> stopStrings(FieldReader fields) {
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

  static SamplingOptions sampling(FieldReader fields) {
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
  SamplingOptions seeded(SamplingOptions sampling, int choice) {
    Long seed = sampling.seed() != null ? sampling.seed() : defaults.seed();
    if (seed == null || choice == 0) {
      return sampling;
    }
    return SamplingOptions.builder().seed(seed + choice * SEED_STEP).build().orElse(sampling);
  }
}
