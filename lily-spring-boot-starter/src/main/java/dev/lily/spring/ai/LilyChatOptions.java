package dev.lily.spring.ai;

import java.time.Duration;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.springframework.ai.chat.prompt.ChatOptions;
import org.springframework.ai.model.tool.DefaultToolCallingChatOptions;
import org.springframework.ai.model.tool.StructuredOutputChatOptions;
import org.springframework.ai.model.tool.ToolCallingChatOptions;

/**
 * What a prompt asks of {@link LilyChatModel}. Immutable; {@code null} means "not said", and then
 * the engine's default holds: first the application's {@code lily.chat.*} sampling properties, then
 * the profile of the mode, then the checkpoint's {@code generation_config.json}.
 */
public final class LilyChatOptions extends DefaultToolCallingChatOptions
    implements StructuredOutputChatOptions {

  private final @Nullable Double minP;
  private final @Nullable Double repetitionPenalty;
  private final @Nullable Map<Integer, Double> logitBias;
  private final @Nullable Long seed;
  private final @Nullable Integer minTokens;
  private final @Nullable Boolean logprobs;
  private final @Nullable Integer topLogprobs;
  private final @Nullable Boolean thinking;
  private final @Nullable Boolean preserveThinking;
  private final @Nullable Duration timeout;
  private final @Nullable Boolean localOnly;
  private final @Nullable String outputSchema;

  private LilyChatOptions(ToolCallingChatOptions portable, Builder builder) {
    super(
        portable.getToolCallbacks(),
        portable.getToolContext(),
        portable.getModel(),
        portable.getFrequencyPenalty(),
        portable.getMaxTokens(),
        portable.getPresencePenalty(),
        portable.getStopSequences(),
        portable.getTemperature(),
        portable.getTopK(),
        portable.getTopP());
    minP = builder.minP;
    repetitionPenalty = builder.repetitionPenalty;
    logitBias = builder.logitBias;
    seed = builder.seed;
    minTokens = builder.minTokens;
    logprobs = builder.logprobs;
    topLogprobs = builder.topLogprobs;
    thinking = builder.thinking;
    preserveThinking = builder.preserveThinking;
    timeout = builder.timeout;
    localOnly = builder.localOnly;
    outputSchema = builder.outputSchema;
  }

  /**
   * The options a prompt means: none are the defaults; Lily's own are taken alone; any others are
   * laid over the defaults, so that portable options lose nothing and need no cast.
   */
  static LilyChatOptions resolve(@Nullable ChatOptions options, LilyChatOptions defaults) {
    if (options == null) {
      return defaults;
    }
    if (options instanceof LilyChatOptions lily) {
      return lily;
    }
    Builder merged = defaults.mutate().combineWith(options.mutate());
    if (options instanceof StructuredOutputChatOptions structured
        && structured.getOutputSchema() != null) {
      merged.outputSchema(structured.getOutputSchema());
    }
    return merged.build();
  }

  /** Drops tokens whose probability is below this share of the likeliest one's, in [0, 1]. */
  public @Nullable Double getMinP() {
    return minP;
  }

  /** Penalty on tokens of the prompt and the answer so far, (0, 10]; 1 turns it off. */
  public @Nullable Double getRepetitionPenalty() {
    return repetitionPenalty;
  }

  /** Bias added to the logit of a token id, each in [-100, 100]. */
  public @Nullable Map<Integer, Double> getLogitBias() {
    return logitBias;
  }

  /** Makes the answer repeatable on one back end. */
  public @Nullable Long getSeed() {
    return seed;
  }

  /** End tokens are not chosen before this many tokens. */
  public @Nullable Integer getMinTokens() {
    return minTokens;
  }

  /** Whether to report log-probabilities, in the generation metadata under {@code logprobs}. */
  public @Nullable Boolean getLogprobs() {
    return logprobs;
  }

  /** Alternatives reported per token, 0 to 20. */
  public @Nullable Integer getTopLogprobs() {
    return topLogprobs;
  }

  /** Whether the model reasons before it answers. */
  public @Nullable Boolean getThinking() {
    return thinking;
  }

  /** Whether the reasoning of earlier turns stays in the prompt. */
  public @Nullable Boolean getPreserveThinking() {
    return preserveThinking;
  }

  /** Most time from submission to the end of the answer. */
  public @Nullable Duration getTimeout() {
    return timeout;
  }

  /** Whether only this process may answer, whatever {@link Overflow} would do. */
  public @Nullable Boolean getLocalOnly() {
    return localOnly;
  }

  /** A JSON schema that the answer follows; one that Lily cannot enforce is refused. */
  @Override
  public @Nullable String getOutputSchema() {
    return outputSchema;
  }

  @Override
  public Builder mutate() {
    return builder()
        .model(getModel())
        .frequencyPenalty(getFrequencyPenalty())
        .maxTokens(getMaxTokens())
        .presencePenalty(getPresencePenalty())
        .stopSequences(getStopSequences())
        .temperature(getTemperature())
        .topK(getTopK())
        .topP(getTopP())
        .toolCallbacks(getToolCallbacks())
        .toolContext(getToolContext())
        .minP(minP)
        .repetitionPenalty(repetitionPenalty)
        .logitBias(logitBias)
        .seed(seed)
        .minTokens(minTokens)
        .logprobs(logprobs)
        .topLogprobs(topLogprobs)
        .thinking(thinking)
        .preserveThinking(preserveThinking)
        .timeout(timeout)
        .localOnly(localOnly)
        .outputSchema(outputSchema);
  }

  @Override
  public boolean equals(@Nullable Object other) {
    return super.equals(other)
        && other instanceof LilyChatOptions that
        && Objects.equals(minP, that.minP)
        && Objects.equals(repetitionPenalty, that.repetitionPenalty)
        && Objects.equals(logitBias, that.logitBias)
        && Objects.equals(seed, that.seed)
        && Objects.equals(minTokens, that.minTokens)
        && Objects.equals(logprobs, that.logprobs)
        && Objects.equals(topLogprobs, that.topLogprobs)
        && Objects.equals(thinking, that.thinking)
        && Objects.equals(preserveThinking, that.preserveThinking)
        && Objects.equals(timeout, that.timeout)
        && Objects.equals(localOnly, that.localOnly)
        && Objects.equals(outputSchema, that.outputSchema);
  }

  @Override
  public int hashCode() {
    return Objects.hash(
        super.hashCode(),
        minP,
        repetitionPenalty,
        logitBias,
        seed,
        minTokens,
        logprobs,
        topLogprobs,
        thinking,
        preserveThinking,
        timeout,
        localOnly,
        outputSchema);
  }

  public static Builder builder() {
    return new Builder();
  }

  /** Collects options field by field; every setter takes {@code null} for "not said". */
  public static final class Builder extends DefaultToolCallingChatOptions.Builder<Builder>
      implements StructuredOutputChatOptions.Builder<Builder> {

    private @Nullable Double minP;
    private @Nullable Double repetitionPenalty;
    private @Nullable Map<Integer, Double> logitBias;
    private @Nullable Long seed;
    private @Nullable Integer minTokens;
    private @Nullable Boolean logprobs;
    private @Nullable Integer topLogprobs;
    private @Nullable Boolean thinking;
    private @Nullable Boolean preserveThinking;
    private @Nullable Duration timeout;
    private @Nullable Boolean localOnly;
    private @Nullable String outputSchema;

    private Builder() {}

    public Builder minP(@Nullable Double value) {
      minP = value;
      return this;
    }

    public Builder repetitionPenalty(@Nullable Double value) {
      repetitionPenalty = value;
      return this;
    }

    public Builder logitBias(@Nullable Map<Integer, Double> value) {
      logitBias = value == null ? null : Map.copyOf(value);
      return this;
    }

    public Builder seed(@Nullable Long value) {
      seed = value;
      return this;
    }

    public Builder minTokens(@Nullable Integer value) {
      minTokens = value;
      return this;
    }

    public Builder logprobs(@Nullable Boolean value) {
      logprobs = value;
      return this;
    }

    public Builder topLogprobs(@Nullable Integer value) {
      topLogprobs = value;
      return this;
    }

    public Builder thinking(@Nullable Boolean value) {
      thinking = value;
      return this;
    }

    public Builder preserveThinking(@Nullable Boolean value) {
      preserveThinking = value;
      return this;
    }

    public Builder timeout(@Nullable Duration value) {
      timeout = value;
      return this;
    }

    public Builder localOnly(@Nullable Boolean value) {
      localOnly = value;
      return this;
    }

    @Override
    public Builder outputSchema(@Nullable String value) {
      outputSchema = value;
      return this;
    }

    @Override
    public Builder combineWith(ChatOptions.Builder<?> other) {
      super.combineWith(other);
      if (other instanceof Builder that) {
        minP = that.minP != null ? that.minP : minP;
        repetitionPenalty =
            that.repetitionPenalty != null ? that.repetitionPenalty : repetitionPenalty;
        logitBias = that.logitBias != null ? that.logitBias : logitBias;
        seed = that.seed != null ? that.seed : seed;
        minTokens = that.minTokens != null ? that.minTokens : minTokens;
        logprobs = that.logprobs != null ? that.logprobs : logprobs;
        topLogprobs = that.topLogprobs != null ? that.topLogprobs : topLogprobs;
        thinking = that.thinking != null ? that.thinking : thinking;
        preserveThinking = that.preserveThinking != null ? that.preserveThinking : preserveThinking;
        timeout = that.timeout != null ? that.timeout : timeout;
        localOnly = that.localOnly != null ? that.localOnly : localOnly;
        outputSchema = that.outputSchema != null ? that.outputSchema : outputSchema;
      }
      return this;
    }

    @Override
    public LilyChatOptions build() {
      return new LilyChatOptions(super.build(), this);
    }
  }
}
