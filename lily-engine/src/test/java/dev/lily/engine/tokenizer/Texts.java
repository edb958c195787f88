package dev.lily.engine.tokenizer;

import java.util.List;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Tuple;

/** Random text for property tests. */
final class Texts {
  private static final List<String> CORNERS =
      List.of(
          " ",
          "  ",
          "\n",
          "\r",
          "\t",
          "\u0085",
          "\u00a0",
          "\u3000",
          "\u2028",
          "\u200b",
          "'",
          "'s",
          "'S",
          "'\u017f",
          "'re",
          "'Ve",
          "'ll",
          "'lL",
          "'m",
          "'d",
          "'T",
          "a",
          "Z",
          "\u00e9",
          "\u017f",
          "\u4e2d",
          "\ud83d\ude00",
          "\u200d",
          "\u0301",
          "\u0323",
          "\u0345",
          "\u0344",
          "\u0f73",
          "\u1100",
          "\u1161",
          "\u11a8",
          "\uac00",
          "\u3099",
          "\u212b",
          "1",
          "\u0661",
          "\u00bd",
          "\u2167",
          "!",
          "...",
          "<|",
          "|>",
          "_",
          "\u0000",
          "\u001c",
          "\uffff",
          "\udbff\udfff");

  private Texts() {}

  static Arbitrary<String> wellFormed() {
    Arbitrary<String> ascii = Arbitraries.chars().range(' ', '~').map(String::valueOf);
    Arbitrary<String> anything =
        Arbitraries.integers()
            .between(0, 0x10FFFF)
            .filter(c -> c < 0xD800 || c > 0xDFFF)
            .map(Character::toString);
    return join(
        Arbitraries.frequencyOf(
            Tuple.of(6, Arbitraries.of(CORNERS)), Tuple.of(3, ascii), Tuple.of(1, anything)));
  }

  /** Lone surrogates too. */
  static Arbitrary<String> anyUtf16() {
    Arbitrary<String> surrogates =
        Arbitraries.chars().range('\ud800', '\udfff').map(String::valueOf);
    return join(Arbitraries.oneOf(wellFormed(), surrogates));
  }

  /** Added tokens of lily-nano, whole and cut, among other text. */
  static Arbitrary<String> withAddedTokens() {
    return join(
        Arbitraries.oneOf(
            Arbitraries.of(
                "<|im_start|>",
                "<|im_end|>",
                "<think>",
                "</think>",
                "<|im_",
                "end|>",
                "<",
                "<thin"),
            wellFormed()));
  }

  private static Arbitrary<String> join(Arbitrary<String> parts) {
    return parts.list().ofMaxSize(12).map(list -> String.join("", list));
  }
}
