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

  /**
   * @throws TokenizerException if no token has this id
   */
  byte[] bytes(int id) {
    byte[] found = find(id);
    if (found == null) {
      throw unknown(id);
    }
    return found;
  }

  /**
   * @throws TokenizerException if no token has this id
   */
  boolean isSpecial(int id) {
    if (find(id) == null) {
      throw unknown(id);
    }
    return special.get(id);
  }

  boolean isUsed(int id) {
    return find(id) != null;
  }

  private byte @Nullable [] find(int id) {
    return id < 0 || id >= bytes.length ? null : bytes[id];
  }

  private TokenizerException unknown(int id) {
    return new TokenizerException(
        "No token has id %d; the ids in use end at %d. Rows of the model beyond that are padding"
                .formatted(id, bytes.length - 1)
            + " and must not be chosen.");
  }
}
