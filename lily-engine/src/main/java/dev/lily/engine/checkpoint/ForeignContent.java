package dev.lily.engine.checkpoint;

import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.Optional;

/** Recognises what lies under a checkpoint file's name in its stead, by the first bytes. */
final class ForeignContent {
  /** Bytes worth looking at. */
  static final int HEAD_BYTES = 256;

  private static final String FETCH_AGAIN =
      "Fetch the file again, for example with 'hf download REPOSITORY --local-dir DIRECTORY'";

  private ForeignContent() {}

  /** What the content is and how to get the right one; empty if it is nothing known. */
  static Optional<String> describe(byte[] head) {
    String text = new String(head, StandardCharsets.ISO_8859_1);
    String start = text.stripLeading().toLowerCase(Locale.ROOT);
    if (text.startsWith("version https://git-lfs")) {
      return Optional.of(
          "This is a Git LFS pointer, a few lines that stand for the real file. Run 'git lfs pull'"
              + " in the clone if it is one. "
              + FETCH_AGAIN);
    }
    if (start.startsWith("<!doctype") || start.startsWith("<html") || start.startsWith("<?xml")) {
      return Optional.of(
          "This is a web page (HTML or XML), not the file: a login, proxy or error page was saved"
              + " under its name. "
              + FETCH_AGAIN);
    }
    if (text.startsWith("PK\u0003\u0004")) {
      return Optional.of(
          "This is a ZIP archive, perhaps PyTorch weights. Lily reads safetensors files. "
              + FETCH_AGAIN);
    }
    if (text.startsWith("GGUF")) {
      return Optional.of(
          "This is a GGUF file. Lily reads safetensors files: take an MLX conversion of the model");
    }
    return Optional.empty();
  }
}
