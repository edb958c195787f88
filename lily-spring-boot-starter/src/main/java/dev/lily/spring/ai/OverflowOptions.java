package dev.lily.spring.ai;

import org.jspecify.annotations.Nullable;
import org.springframework.ai.chat.model.ChatModel;
import org.springframework.ai.chat.prompt.ChatOptions;

/** Says in another model's words what a request asks of Lily. Thread-safe; must not block. */
@FunctionalInterface
public interface OverflowOptions {
  /**
   * The whole options of a request to the other model.
   *
   * @return {@code null} if the other model cannot do what is asked; then the request stays
   */
  @Nullable ChatOptions of(LilyChatOptions asked);

  /**
   * Lays the portable options, tools and an output schema over the other model's own options; a
   * model name goes along unless it is the loaded model's. A request stays if it has an option that
   * gets lost on this way, unless its value is just the application's default.
   *
   * @param defaults what the application says for all requests to Lily
   */
  static OverflowOptions portable(LilyChatOptions defaults, ChatModel other) {
    return new PortableOptions(defaults, other);
  }
}
