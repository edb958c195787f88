package dev.lily.metal.msl;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class MslTypeCheckTest {
  private static final Path WRONG = Path.of("src/test/resources/dev/lily/metal/msl/wrong");
  private static final String EXPECTATION = "// refused: ";

  static List<String> families() {
    return MslToolchain.FAMILIES;
  }

  static List<Path> wrongSources() throws IOException {
    try (Stream<Path> files = Files.list(WRONG)) {
      return files.sorted().toList();
    }
  }

  @ParameterizedTest
  @MethodSource("families")
  void acceptsEveryKernelSource(String family) {
    MslToolchain.Outcome outcome = Tools.toolchain().check(family, MslToolchain.source(family));
    assertThat(outcome.output()).isEmpty();
    assertThat(outcome.succeeded()).isTrue();
  }

  @ParameterizedTest
  @MethodSource("wrongSources")
  void refusesEachWrongSourceForItsOwnReason(Path file) throws IOException {
    String source = Files.readString(file);
    String first = source.lines().findFirst().orElseThrow();
    assertThat(first).startsWith(EXPECTATION);
    MslToolchain.Outcome outcome = Tools.toolchain().check("wrong-" + file.getFileName(), source);
    assertThat(outcome.succeeded()).isFalse();
    assertThat(outcome.output()).containsPattern(first.substring(EXPECTATION.length()));
  }

  @Test
  void seesTheKernelsThatMacrosMake() {
    MslTranslator translator =
        Tools.toolchain().preprocess("elementwise", MslToolchain.source("elementwise"));
    assertThat(translator.kernels())
        .extracting(MslTranslator.Kernel::name)
        .contains("embed_q4_f32", "embed_f32_f32", "gather_rows");
  }
}
