package dev.lily.engine.chat;

import java.util.concurrent.ThreadLocalRandom;

/** Ids of tool calls: {@code call_} and 24 random letters and digits. Safe for all threads. */
final class ToolCallIds {
  private static final String ALPHABET =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  private static final int LENGTH = 24;

  private ToolCallIds() {}

  static String next() {
    ThreadLocalRandom random = ThreadLocalRandom.current();
    StringBuilder id = new StringBuilder("call_");
    for (int i = 0; i < LENGTH; i++) {
      id.append(ALPHABET.charAt(random.nextInt(ALPHABET.length())));
    }
    return id.toString();
  }
}
