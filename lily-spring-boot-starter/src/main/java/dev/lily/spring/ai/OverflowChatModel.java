package dev.lily.spring.ai;

import dev.lily.engine.generation.GenerationException;
import org.springframework.ai.chat.model.ChatModel;
import org.springframework.ai.chat.model.ChatResponse;
import org.springframework.ai.chat.prompt.ChatOptions;
import org.springframework.ai.chat.prompt.Prompt;
import org.springframework.util.Assert;
import reactor.core.publisher.Flux;

/**
 * Answers by a {@link LilyChatModel} as long as that can, and by another chat model where {@link
 * Overflow} says so. A stream goes to the other model before its first chunk or not at all.
 * Response metadata has {@value Overflow#ANSWERED_BY}, which is {@value #LOCAL} or the other
 * model's bean name, and in the latter case {@value Overflow#REASON}. Thread-safe.
 */
public final class OverflowChatModel implements ChatModel {
  /** Who answered, if it was this process. */
  public static final String LOCAL = "local";

  private final ChatModel local;
  private final Overflow overflow;

  /**
   * A model over two others.
   *
   * @param local the model on the engine, whose refusals send prompts away
   */
  public OverflowChatModel(ChatModel local, Overflow overflow) {
    Assert.notNull(local, "local must not be null");
    Assert.notNull(overflow, "overflow must not be null");
    this.local = local;
    this.overflow = overflow;
  }

  /** The local model's. */
  @Override
  public ChatOptions getOptions() {
    return local.getOptions();
  }

  @Override
  public ChatResponse call(Prompt prompt) {
    Overflow.Departure sent = overflow.byPolicy(prompt);
    if (sent != null) {
      return sent.call();
    }
    try {
      return local(local.call(prompt));
    } catch (GenerationException refusal) {
      Overflow.Departure refused = overflow.after(refusal, prompt);
      if (refused == null) {
        throw refusal;
      }
      return refused.call();
    }
  }

  @Override
  public Flux<ChatResponse> stream(Prompt prompt) {
    return Flux.defer(
        () -> {
          Overflow.Departure sent = overflow.byPolicy(prompt);
          return sent != null ? sent.stream() : streamLocally(prompt);
        });
  }

  private Flux<ChatResponse> streamLocally(Prompt prompt) {
    return local.stream(prompt)
        .map(OverflowChatModel::local)
        .switchOnFirst(
            (first, answer) -> {
              Throwable refusal = first.getThrowable();
              Overflow.Departure refused = refusal == null ? null : overflow.after(refusal, prompt);
              return refused == null ? answer : refused.stream();
            });
  }

  private static ChatResponse local(ChatResponse response) {
    return ChatResponse.builder().from(response).metadata(Overflow.ANSWERED_BY, LOCAL).build();
  }
}
