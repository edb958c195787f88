package dev.lily.spring.ai;

import dev.lily.engine.generation.ContextOverflowException;
import dev.lily.engine.generation.EngineBusyException;
import dev.lily.spring.OverflowReason;
import dev.lily.spring.OverflowRecorder;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.springframework.ai.chat.model.ChatModel;
import org.springframework.ai.chat.model.ChatResponse;
import org.springframework.ai.chat.prompt.ChatOptions;
import org.springframework.ai.chat.prompt.Prompt;
import org.springframework.ai.model.tool.DefaultToolCallingChatOptions;
import org.springframework.ai.model.tool.ToolCallingChatOptions;
import org.springframework.util.Assert;
import reactor.core.publisher.Flux;

/**
 * Answers by a {@link LilyChatModel} as long as it can, and by another chat model if its queue is
 * full, if the prompt does not fit its context, or if a policy says so. A request whose {@link
 * LilyChatOptions} say {@code localOnly} never leaves; it fails as without this class. What the
 * other model answers, failures included, is the answer: nothing comes back. Thread-safe.
 *
 * <p>The other model gets the portable part of the options over its own, tools included, but not
 * the name of the local model. Response metadata has {@value #ANSWERED_BY}, {@value #LOCAL} or the
 * other model's name, and in the latter case {@value #REASON}.
 */
public final class OverflowChatModel implements ChatModel {
  /** Key of response metadata: who answered. */
  public static final String ANSWERED_BY = "answeredBy";

  /** Key of response metadata: why another model answered. */
  public static final String REASON = "overflowReason";

  /** Value of {@link #ANSWERED_BY} for this process. */
  public static final String LOCAL = "local";

  private final LilyChatModel local;
  private final ChatModel other;
  private final String otherName;
  private final Set<OverflowReason> reasons;
  private final List<OverflowPolicy> policies;
  private final OverflowRecorder recorder;

  /**
   * A model over two others.
   *
   * @param otherName the other model's name in metadata and meters
   * @param reasons which failures of the local model send a request away; {@code POLICY} has no
   *     effect here
   * @param policies send a request away if one of them says so
   */
  public OverflowChatModel(
      LilyChatModel local,
      ChatModel other,
      String otherName,
      Set<OverflowReason> reasons,
      List<OverflowPolicy> policies,
      OverflowRecorder recorder) {
    Assert.isTrue(!local.equals(other), "the other model must not be the local one");
    this.local = local;
    this.other = other;
    this.otherName = otherName;
    this.reasons = reasons.isEmpty() ? Set.of() : EnumSet.copyOf(reasons);
    this.policies = List.copyOf(policies);
    this.recorder = recorder;
  }

  /** The local model's. */
  @Override
  public LilyChatOptions getOptions() {
    return local.getOptions();
  }

  @Override
  public ChatResponse call(Prompt prompt) {
    if (isSentAway(prompt)) {
      return callOther(prompt, OverflowReason.POLICY);
    }
    try {
      return answeredBy(local.call(prompt), LOCAL, null);
    } catch (EngineBusyException | ContextOverflowException e) {
      OverflowReason reason = reason(e);
      if (reason == null || !mayLeave(prompt)) {
        throw e;
      }
      return callOther(prompt, reason);
    }
  }

  @Override
  public Flux<ChatResponse> stream(Prompt prompt) {
    return Flux.defer(
        () ->
            isSentAway(prompt)
                ? streamOther(prompt, OverflowReason.POLICY)
                : local.stream(prompt)
                    .map(response -> answeredBy(response, LOCAL, null))
                    // Both come at submission, so before any part of an answer.
                    .onErrorResume(
                        failure -> {
                          OverflowReason reason = reason(failure);
                          return reason == null || !mayLeave(prompt)
                              ? Flux.error(failure)
                              : streamOther(prompt, reason);
                        }));
  }

  private ChatResponse callOther(Prompt prompt, OverflowReason reason) {
    recorder.record(reason, otherName);
    return answeredBy(other.call(forOther(prompt)), otherName, reason);
  }

  private Flux<ChatResponse> streamOther(Prompt prompt, OverflowReason reason) {
    recorder.record(reason, otherName);
    return other.stream(forOther(prompt)).map(part -> answeredBy(part, otherName, reason));
  }

  private boolean isSentAway(Prompt prompt) {
    return mayLeave(prompt) && policies.stream().anyMatch(policy -> policy.sendsAway(prompt));
  }

  /** A prompt without options of its own has the local model's. */
  private boolean mayLeave(Prompt prompt) {
    ChatOptions asked = prompt.getOptions();
    LilyChatOptions options = asked instanceof LilyChatOptions lily ? lily : local.getOptions();
    return !Boolean.TRUE.equals(options.getLocalOnly());
  }

  private @Nullable OverflowReason reason(Throwable failure) {
    OverflowReason reason =
        switch (failure) {
          case EngineBusyException _ -> OverflowReason.BUSY;
          case ContextOverflowException _ -> OverflowReason.CONTEXT;
          default -> null;
        };
    return reason != null && reasons.contains(reason) ? reason : null;
  }

  private Prompt forOther(Prompt prompt) {
    ChatOptions asked = prompt.getOptions() == null ? local.getOptions() : prompt.getOptions();
    ChatOptions own = other.getOptions();
    ChatOptions.Builder<?> merged =
        own instanceof LilyChatOptions && asked instanceof LilyChatOptions lily
            ? own.mutate().combineWith(lily.mutate().model(null))
            : own.mutate().combineWith(portable(asked).mutate());
    return prompt.mutate().chatOptions(merged.build()).build();
  }

  private static ToolCallingChatOptions portable(ChatOptions asked) {
    DefaultToolCallingChatOptions.Builder<?> portable = DefaultToolCallingChatOptions.builder();
    portable.frequencyPenalty(asked.getFrequencyPenalty());
    portable.maxTokens(asked.getMaxTokens());
    portable.presencePenalty(asked.getPresencePenalty());
    portable.stopSequences(asked.getStopSequences());
    portable.temperature(asked.getTemperature());
    portable.topK(asked.getTopK());
    portable.topP(asked.getTopP());
    if (asked instanceof ToolCallingChatOptions tools) {
      portable.toolCallbacks(tools.getToolCallbacks());
      portable.toolContext(tools.getToolContext());
    }
    return portable.build();
  }

  private static ChatResponse answeredBy(
      ChatResponse response, String name, @Nullable OverflowReason reason) {
    ChatResponse.Builder marked = ChatResponse.builder().from(response).metadata(ANSWERED_BY, name);
    return reason == null ? marked.build() : marked.metadata(REASON, reason.tag()).build();
  }
}
