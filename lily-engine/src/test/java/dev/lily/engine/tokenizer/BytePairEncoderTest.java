package dev.lily.engine.tokenizer;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class BytePairEncoderTest {
  @TempDir private Path directory;

  @Test
  void mergesTheFirstListedPairFirst() {
    Tokenizer tokenizer = small("b c", "a b", "a bc");
    assertThat(tokenizer.encode("abc")).containsExactly(258);
    assertThat(tokenizer.encode("ab")).containsExactly(257);
  }

  @Test
  void mergesOnlyListedPairsEvenIfTheResultIsAToken() {
    // "ab" goes first and leaves "ab" + "c", which no merge joins although "abc" is a token.
    Tokenizer tokenizer = small("a b", "b c", "a bc");
    assertThat(tokenizer.encode("abc")).containsExactly(256, 'c');
  }

  @Test
  void givesOneTokenForTwoMergesWithTheSameResult() {
    Tokenizer tokenizer = small("b c", "a bc", "x a", "a b", "ab c");
    assertThat(tokenizer.encode("abc")).containsExactly(257);
    assertThat(tokenizer.encode("xabc")).containsExactly('x', 257);
  }

  @Test
  void mergesEqualPairsFromTheLeft() {
    Tokenizer tokenizer = small("a a", "aa a");
    assertThat(tokenizer.encode("aaa")).containsExactly(257);
    assertThat(tokenizer.encode("aaaa")).containsExactly(256, 256);
    assertThat(tokenizer.encode("aaaaa")).containsExactly(256, 257);
  }

  @Test
  void mergesBytesOfOneCharacter() {
    Tokenizer tokenizer = small("\u00c3 \u00a9");
    assertThat(tokenizer.encode("\u00e9")).containsExactly(256);
    assertThat(tokenizer.bytes(256)).containsExactly(0xC3, 0xA9);
  }

  private Tokenizer small(String... merges) {
    return Tokenizer.read(TokenizerFiles.write(directory, TokenizerFiles.small(merges)));
  }
}
