package dev.lily.engine.generation;

import dev.lily.engine.tokenizer.Tokenizer;
import java.nio.file.Path;

/** The test model's tokenizer, read once. */
final class Nano {
  static final Tokenizer TOKENIZER = Tokenizer.read(Path.of(System.getProperty("lily.nano.dir")));

  /** Ends an answer. */
  static final int END = TOKENIZER.addedToken("<|im_end|>").orElseThrow();

  private Nano() {}

  /** The ids of a model's answer, tags as single tokens where it has them. */
  static int[] ids(String text) {
    return TOKENIZER.encode(text);
  }
}
