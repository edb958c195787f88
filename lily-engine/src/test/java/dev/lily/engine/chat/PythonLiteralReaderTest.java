package dev.lily.engine.chat;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class PythonLiteralReaderTest {

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "{}                       | {}",
        "{'a': 1, 2: 'b', None: 3} | {\"a\":1,\"2\":\"b\",\"null\":3}",
        "{'a': {'b': [True, False, None]}} | {\"a\":{\"b\":[true,false,null]}}",
        "[1, -2.5, 1e2, true, null] | [1,-2.5,100,true,null]",
        "(1, 'x',)                | [1,\"x\"]",
        "()                       | []",
        "[ ]                      | []",
        "'it\\'s'                 | \"it's\"",
        "\"it's\"                 | \"it's\"",
        "'a\\nb\\tc\\\\d'         | \"a\\nb\\tc\\\\d\"",
        "'\\x41\\u00e9\\U0001F600' | \"Aé😀\"",
        "'\\d'                    | \"\\\\d\"",
      })
  void readsLiterals(String text, String expected) {
    assertThat(PythonLiteralReader.read(text).orElseThrow()).hasToString(expected);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        " ",
        "x",
        "[1",
        "[1 2]",
        "[,]",
        "{'a'}",
        "{'a' 1}",
        "{'a': }",
        "{[1]: 2}",
        "'open",
        "'\\",
        "'\\x4'",
        "'\\U00110000'",
        "[1] 2",
        "1_000",
        "f('x')",
        "--1",
        "1.2.3",
        "e",
        "."
      })
  void refusesTheRest(String text) {
    assertThat(PythonLiteralReader.read(text)).isEmpty();
  }

  @Test
  void nestsToALimit() {
    int depth = PythonLiteralReader.MAX_DEPTH;

    assertThat(PythonLiteralReader.read("[".repeat(depth) + "1" + "]".repeat(depth))).isPresent();
    assertThat(PythonLiteralReader.read("[".repeat(depth + 1) + "1" + "]".repeat(depth + 1)))
        .isEmpty();
    assertThat(PythonLiteralReader.read("{'a':".repeat(1_000_000))).isEmpty();
  }
}
