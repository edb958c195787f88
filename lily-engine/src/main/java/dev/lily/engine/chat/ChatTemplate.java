package dev.lily.engine.chat;

/** Renders conversations as the Qwen3.6 chat template does. Immutable and thread-safe. */
public final class ChatTemplate {

  /**
   * Switches of the template.
   *
   * @param addGenerationPrompt open the assistant's turn
   * @param enableThinking let the model reason first
   * @param preserveThinking keep the reasoning of all earlier turns
   * @param addVisionId number images and videos
   */
  public record Options(
      boolean addGenerationPrompt,
      boolean enableThinking,
      boolean preserveThinking,
      boolean addVisionId) {}

  /** Whether a checkpoint's template text is the one this class renders (trailing breaks aside). */
  public static boolean isKnown(String template) {
    throw new UnsupportedOperationException(template);
  }

  /**
   * Renders a conversation; late system messages are merged into the leading block first.
   *
   * @throws InvalidConversationException where the template raises an error
   */
  public RenderedPrompt render(Conversation conversation, Options options) {
    throw new UnsupportedOperationException();
  }
}
