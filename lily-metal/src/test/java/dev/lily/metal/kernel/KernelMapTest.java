package dev.lily.metal.kernel;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** The kernel map of the documentation names every kernel, and no other. */
class KernelMapTest {
  private static final Path PAGE =
      Path.of(System.getProperty("basedir", "")).toAbsolutePath().resolveSibling("docs/metal.md");
  private static final Pattern NAME = Pattern.compile("`(\\w+)`");

  /** The second column's names, as patterns. */
  private static List<Pattern> map() throws IOException {
    return Files.readAllLines(PAGE).stream()
        .dropWhile(line -> !line.equals("## Kernel map"))
        .skip(1)
        .takeWhile(line -> !line.startsWith("## "))
        .filter(line -> line.startsWith("| "))
        .skip(1) // the table's head
        .flatMap(line -> NAME.matcher(line.split("\\|")[2]).results())
        .map(KernelMapTest::pattern)
        .toList();
  }

  private static Pattern pattern(MatchResult name) {
    return Pattern.compile(
        name.group(1)
            .replace("FORMAT", "(q4|q8|bf16|f32)")
            .replace("OUT", "(bf16|f32)")
            .replaceAll("_([orm])[ORM]\\b|_([orm])[ORM](?=_)", "_$1$2\\\\d+"));
  }

  @Test
  void namesEveryKernel() throws IOException {
    List<Pattern> map = map();
    assertThat(KernelLibrary.names())
        .allMatch(name -> map.stream().anyMatch(pattern -> pattern.matcher(name).matches()));
  }

  @Test
  void namesNoOther() throws IOException {
    assertThat(map())
        .isNotEmpty()
        .allMatch(
            pattern -> KernelLibrary.names().stream().anyMatch(n -> pattern.matcher(n).matches()));
  }
}
