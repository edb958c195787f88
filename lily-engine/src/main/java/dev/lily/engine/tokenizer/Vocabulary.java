package dev.lily.engine.tokenizer;

import java.util.BitSet;
import org.jspecify.annotations.Nullable;

/** What each id stands for. Immutable. */
final class Vocabulary {
  /** UTF-8 by id; null for ids that are not in use. */
  private final byte[] @Nullable [] bytes;

  private final BitSet special;

  /**
   * @param bytes UTF-8 by id, null where an id is not in use; handed over
   * @param special ids of special tokens; handed over
   */
  Vocabulary(byte[] @Nullable [] bytes, BitSet special) {
    this.bytes = bytes;
    this.special = special;
  }

  int size() {
    return bytes.length;
  }

  byte[] bytes(int id) {
    byte[] found = id < 0 || id >= bytes.length ? null : bytes[id];
    if (found == null) {
      throw new TokenizerException(
          "No token has id "
              + id
              + "; the ids in use end at "
              + (bytes.length - 1)
              + ". Rows of the model beyond that are padding and must not be chosen.");
    }
    return found;
  }

  boolean isSpecial(int id) {
    return bytes(id).length > 0 && special.get(id);
  }
}
