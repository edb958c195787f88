package dev.lily.spring.ai;

import dev.lily.engine.generation.ContextOverflowException;
import dev.lily.engine.generation.EngineBusyException;
import dev.lily.spring.OverflowReason;
import dev.lily.spring.OverflowRecorder;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.ai.chat.model.ChatModel;
import org.springframework.ai.chat.model.ChatResponse;
import org.springframework.ai.chat.prompt.ChatOptions;
import org.springframework.ai.chat.prompt.Prompt;
import org.springframework.util.Assert;
import reactor.core.publisher.Flux;

/**
 * Decides which prompts another chat model answers instead of the engine, and sends them there. A
 * prompt whose {@link LilyChatOptions} say {@code localOnly} never leaves, nor does one with
 * options that the other model cannot honour ({@link OverflowOptions}). Thread-safe.
 */
public final class Overflow {
  /** Key of response metadata: who answered. */
  public static final String ANSWERED_BY = "answeredBy";

  /** Key of response metadata: why another model answered. */
  public static final String REASON = "overflowReason";

  private static final Logger log = LoggerFactory.getLogger(Overflow.class);

  private final LilyChatOptions defaults;
  private final ChatModel other;
  private final String otherName;
  private final Set<OverflowReason> reasons;
  private final List<OverflowPolicy> policies;
  private final OverflowOptions options;
  private final OverflowRecorder recorder;

  private Overflow(Builder builder) {
    defaults = builder.defaults;
    other = builder.other;
    otherName = builder.otherName;
    reasons = builder.reasons;
    policies = builder.policies;
    options = builder.options == null ? OverflowOptions.portable(defaults, other) : builder.options;
    recorder = builder.recorder;
  }

  /**
   * Overflow to another model.
   *
   * @param defaults what the application says for all requests to Lily
   * @param otherName the other model's bean name
   */
  public static Builder builder(LilyChatOptions defaults, ChatModel other, String otherName) {
    return new Builder(defaults, other, otherName);
  }

  /** Whether some prompts leave before the engine is asked. */
  boolean hasPolicies() {
    return !policies.isEmpty();
  }

  /** The way out of a prompt that a policy sends away; {@code null} if it stays. */
  @Nullable Departure byPolicy(Prompt prompt) {
    if (policies.isEmpty() || isLocalOnly(prompt)) {
      return null;
    }
    return policies.stream().anyMatch(policy -> policy.sendsAway(prompt))
        ? departure(prompt, OverflowReason.POLICY)
        : null;
  }

  /** The way out of a prompt that the engine did not take; {@code null} if it stays. */
  @Nullable Departure after(Throwable refusal, Prompt prompt) {
    OverflowReason reason =
        switch (refusal) {
          case EngineBusyException _ -> OverflowReason.QUEUE_FULL;
          case ContextOverflowException _ -> OverflowReason.PROMPT_TOO_LONG;
          default -> null;
        };
    return reason == null || !reasons.contains(reason) || isLocalOnly(prompt)
        ? null
        : departure(prompt, reason);
  }

  private @Nullable Departure departure(Prompt prompt, OverflowReason reason) {
    ChatOptions said = options.of(asked(prompt));
    return said == null ? null : new Departure(prompt.mutate().chatOptions(said).build(), reason);
  }

  /** A prompt that does not say is what the application says. */
  private boolean isLocalOnly(Prompt prompt) {
    Boolean said = asked(prompt).getLocalOnly();
    return Boolean.TRUE.equals(said == null ? defaults.getLocalOnly() : said);
  }

  private LilyChatOptions asked(Prompt prompt) {
    return LilyChatOptions.resolve(prompt.getOptions(), defaults);
  }

  /** One prompt's way to the other model; what that answers, failures included, is the answer. */
  final class Departure {
    private final Prompt prompt;
    private final OverflowReason reason;

    private Departure(Prompt prompt, OverflowReason reason) {
      this.prompt = prompt;
      this.reason = reason;
    }

    /** Bean name of the other model. */
    String bean() {
      return otherName;
    }

    /** Name of the model that the other one is asked for; its bean's if it has no other. */
    String model() {
      String model = prompt.getOptions() == null ? null : prompt.getOptions().getModel();
      return model == null ? otherName : model;
    }

    ChatResponse call() {
      leave();
      return marked(other.call(prompt));
    }

    Flux<ChatResponse> stream() {
      return Flux.defer(
          () -> {
            leave();
            return other.stream(prompt).map(this::marked);
          });
    }

    private void leave() {
      log.debug("Chat model '{}' answers a request: {}", otherName, reason.tag());
      recorder.record(reason, otherName);
    }

    private ChatResponse marked(ChatResponse response) {
      return ChatResponse.builder()
          .from(response)
          .metadata(ANSWERED_BY, otherName)
          .metadata(REASON, reason.tag())
          .build();
    }
  }

  /** Collects what overflow needs. */
  public static final class Builder {
    private final LilyChatOptions defaults;
    private final ChatModel other;
    private final String otherName;
    private Set<OverflowReason> reasons =
        Set.of(OverflowReason.QUEUE_FULL, OverflowReason.PROMPT_TOO_LONG);
    private List<OverflowPolicy> policies = List.of();
    private @Nullable OverflowOptions options;
    private OverflowRecorder recorder = OverflowRecorder.NONE;

    private Builder(LilyChatOptions defaults, ChatModel other, String otherName) {
      Assert.notNull(defaults, "defaults must not be null");
      Assert.notNull(other, "other must not be null");
      Assert.hasText(otherName, "otherName must not be empty");
      this.defaults = defaults;
      this.other = other;
      this.otherName = otherName;
    }

    /** Which refusals of the engine send a request away; both by default. */
    public Builder reasons(Set<OverflowReason> value) {
      reasons = Set.copyOf(value);
      return this;
    }

    /** Each may send a request away; none by default. */
    public Builder policies(List<OverflowPolicy> value) {
      policies = List.copyOf(value);
      return this;
    }

    /** Says requests in the other model's words; the default is the portable way. */
    public Builder options(@Nullable OverflowOptions value) {
      options = value;
      return this;
    }

    public Builder recorder(OverflowRecorder value) {
      Assert.notNull(value, "recorder must not be null");
      recorder = value;
      return this;
    }

    public Overflow build() {
      return new Overflow(this);
    }
  }
}
