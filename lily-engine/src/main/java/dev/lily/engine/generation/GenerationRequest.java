package dev.lily.engine.generation;

import dev.lily.engine.chat.Conversation;
import dev.lily.engine.chat.Message;
import dev.lily.engine.chat.ToolDefinition;
import dev.lily.engine.constraint.OutputConstraint;
import dev.lily.engine.sampling.SamplingOptions;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * One immutable request. {@code null} means "the engine's default".
 *
 * @param conversation messages and tools; not read if there is a raw prompt
 * @param thinking whether the model reasons first; default true
 * @param preserveThinking keep earlier turns' reasoning in the prompt
 * @param sampling what the caller asks of sampling
 * @param maxTokens most tokens to generate, at least 1; default: what the context window leaves
 * @param minTokens end tokens are not chosen before this many tokens, and stop strings do not count
 *     in them
 * @param stopStrings the answer ends right before the first of them; not empty strings. They are
 *     looked for in the answer text only: a stop string such as a line break neither cuts the
 *     reasoning short nor breaks a tool call, and one never matches across a tool call. What counts
 *     is the first to be complete; of several complete at once, the longest
 * @param topLogprobs report log-probabilities with this many alternatives (0 to 20)
 * @param timeout from submission to the last event
 * @param output what the answer must look like; the reasoning is free, and so is a call of a tool
 *     instead of the answer. Not with {@code minTokens}. The answer breaks off where the token
 *     limit or a stop string ends it
 * @param toolChoice whether tools must be called; arguments then follow the tools' schemas
 * @param parallelToolCalls whether more than one tool may be called; if not, arguments follow the
 *     tools' schemas
 * @param rawPrompt read instead of the conversation; then there is no reasoning, and all that the
 *     model writes is answer text
 */
public record GenerationRequest(
    Conversation conversation,
    @Nullable Boolean thinking,
    boolean preserveThinking,
    SamplingOptions sampling,
    @Nullable Integer maxTokens,
    int minTokens,
    List<String> stopStrings,
    @Nullable Integer topLogprobs,
    @Nullable Duration timeout,
    @Nullable OutputConstraint output,
    ToolChoice toolChoice,
    boolean parallelToolCalls,
    @Nullable RawPrompt rawPrompt) {

  /** Most stop strings per request. */
  public static final int MAX_STOP_STRINGS = 16;

  private static final Conversation NO_CONVERSATION = new Conversation(List.of(), List.of());

  public GenerationRequest {
    stopStrings = List.copyOf(stopStrings);
    if (maxTokens != null && maxTokens < 1) {
      throw new InvalidRequestException(
          "maxTokens", "maxTokens is " + maxTokens + "; it must be at least 1");
    }
    if (minTokens < 0 || (maxTokens != null && minTokens > maxTokens)) {
      throw new InvalidRequestException(
          "minTokens",
          "minTokens is " + minTokens + "; it must be between 0 and maxTokens (" + maxTokens + ")");
    }
    if (stopStrings.size() > MAX_STOP_STRINGS) {
      throw new InvalidRequestException(
          "stopStrings",
          stopStrings.size() + " stop strings given; at most " + MAX_STOP_STRINGS + " are allowed");
    }
    if (stopStrings.contains("")) {
      throw new InvalidRequestException(
          "stopStrings", "A stop string is empty; leave it out or give at least one character");
    }
    for (String stop : stopStrings) {
      if (hasUnpairedSurrogate(stop)) {
        throw new InvalidRequestException(
            "stopStrings", "A stop string has half of a surrogate pair; give whole characters");
      }
    }
    if (topLogprobs != null && (topLogprobs < 0 || topLogprobs > 20)) {
      throw new InvalidRequestException(
          "topLogprobs", "topLogprobs is " + topLogprobs + "; it must be between 0 and 20");
    }
    if (timeout != null && !timeout.isPositive()) {
      throw new InvalidRequestException(
          "timeout", "timeout is " + timeout + "; it must be positive");
    }
  }

  private static boolean hasUnpairedSurrogate(String text) {
    return text.codePoints()
        .anyMatch(c -> c >= Character.MIN_SURROGATE && c <= Character.MAX_SURROGATE);
  }

  public static Builder builder(Conversation conversation) {
    return new Builder(conversation, null);
  }

  /** A request to continue a text without the chat template. */
  public static Builder builder(RawPrompt prompt) {
    return new Builder(NO_CONVERSATION, prompt);
  }

  /** A request with one user message and all defaults. */
  public static GenerationRequest of(String userText) {
    return builder(Conversation.of(new Message.User(userText))).build();
  }

  /** Collects a request field by field. */
  public static final class Builder {
    private final @Nullable RawPrompt rawPrompt;
    private Conversation conversation;
    private @Nullable Boolean thinking;
    private boolean preserveThinking;
    private SamplingOptions sampling = SamplingOptions.NONE;
    private @Nullable Integer maxTokens;
    private int minTokens;
    private List<String> stopStrings = List.of();
    private @Nullable Integer topLogprobs;
    private @Nullable Duration timeout;
    private @Nullable OutputConstraint output;
    private ToolChoice toolChoice = ToolChoice.AUTO;
    private boolean parallelToolCalls = true;

    private Builder(Conversation conversation, @Nullable RawPrompt rawPrompt) {
      this.conversation = Objects.requireNonNull(conversation);
      this.rawPrompt = rawPrompt;
    }

    public Builder tools(List<ToolDefinition> tools) {
      conversation = new Conversation(conversation.messages(), tools);
      return this;
    }

    public Builder thinking(@Nullable Boolean value) {
      thinking = value;
      return this;
    }

    public Builder preserveThinking(boolean value) {
      preserveThinking = value;
      return this;
    }

    public Builder sampling(SamplingOptions value) {
      sampling = value;
      return this;
    }

    public Builder maxTokens(@Nullable Integer value) {
      maxTokens = value;
      return this;
    }

    public Builder minTokens(int value) {
      minTokens = value;
      return this;
    }

    public Builder stopStrings(List<String> value) {
      stopStrings = value;
      return this;
    }

    public Builder topLogprobs(@Nullable Integer value) {
      topLogprobs = value;
      return this;
    }

    public Builder timeout(@Nullable Duration value) {
      timeout = value;
      return this;
    }

    public Builder output(@Nullable OutputConstraint value) {
      output = value;
      return this;
    }

    public Builder toolChoice(ToolChoice value) {
      toolChoice = value;
      return this;
    }

    public Builder parallelToolCalls(boolean value) {
      parallelToolCalls = value;
      return this;
    }

    public GenerationRequest build() {
      return new GenerationRequest(
          conversation,
          thinking,
          preserveThinking,
          sampling,
          maxTokens,
          minTokens,
          stopStrings,
          topLogprobs,
          timeout,
          output,
          toolChoice,
          parallelToolCalls,
          rawPrompt);
    }
  }
}
