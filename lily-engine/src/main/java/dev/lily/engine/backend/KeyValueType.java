package dev.lily.engine.backend;

import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Collectors;

/** What keys and values are kept as in the pages of the KV cache. Sums over them are fp32. */
public enum KeyValueType {
  /** Rounded to bf16, half the bytes of fp32. */
  BF16,
  /**
   * Symmetric int8: the key and the value of a token and KV head each have one fp32 scale, the
   * largest magnitude over 127.
   */
  INT8,
  /** As computed, exactly. */
  FP32;

  /** The word that stands for it in a configuration. */
  public String word() {
    return name().toLowerCase(Locale.ROOT);
  }

  /** All words, for messages. */
  public static String words() {
    return Arrays.stream(values()).map(KeyValueType::word).collect(Collectors.joining(", "));
  }

  /**
   * The type that a word stands for.
   *
   * @throws BackendException if none does
   */
  public static KeyValueType of(String word) {
    return Arrays.stream(values())
        .filter(type -> type.word().equals(word))
        .findFirst()
        .orElseThrow(
            () ->
                new BackendException(
                    "The KV cache's type is '%s'; it must be one of %s".formatted(word, words())));
  }
}
