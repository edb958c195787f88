package dev.lily.engine.chat;

/** A conversation cannot be rendered: a role, a content part, an order or an argument is wrong. */
public final class InvalidConversationException extends IllegalArgumentException {
  private static final long serialVersionUID = 1L;

  private final String path;

  /**
   * @param path what is wrong, for example {@code messages[3].content}
   * @param message the value, the rule and the way out
   */
  public InvalidConversationException(String path, String message) {
    super(message);
    this.path = path;
  }

  /** Where in the conversation the trouble is, for example {@code messages[3].content}. */
  public String path() {
    return path;
  }
}
