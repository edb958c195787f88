package dev.lily.sample;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The table of cases from the field names tests that exist. */
class FieldCasesTableTest {

  private static final Path ROOT = Path.of("").toAbsolutePath().getParent();
  private static final List<String> MODULES =
      List.of("lily-engine", "lily-spring-boot-starter", "sample-app", "sample-app/clients");
  private static final Pattern ROW = Pattern.compile("\\| ([a-z0-9-]+) \\|.*");
  private static final Pattern TEST = Pattern.compile("`(\\w+)#(\\w+)`");

  private static Map<String, String> sources() throws IOException {
    Map<String, String> sources = new HashMap<>();
    for (String module : MODULES) {
      try (Stream<Path> files = Files.walk(ROOT.resolve(module).resolve("src/test/java"))) {
        for (Path file : files.filter(path -> path.toString().endsWith(".java")).toList()) {
          String name = file.getFileName().toString();
          sources.put(name.substring(0, name.length() - ".java".length()), Files.readString(file));
        }
      }
    }
    return sources;
  }

  private static List<MatchResult> tests(String text) {
    return TEST.matcher(text).results().toList();
  }

  private static boolean isTest(String source, String method) {
    return Pattern.compile("\\n *@(Test|ParameterizedTest|Property|TestFactory)\\b")
            .matcher(source)
            .find()
        && Pattern.compile("\\n *(void|Stream<DynamicTest>) " + method + "\\(")
            .matcher(source)
            .find();
  }

  @Test
  void everyTestItNamesExists() throws IOException {
    Map<String, String> sources = sources();
    assertThat(tests(Files.readString(ROOT.resolve("docs/field-cases.md"))))
        .hasSizeGreaterThan(100)
        .allSatisfy(
            test ->
                assertThat(isTest(sources.getOrDefault(test.group(1), ""), test.group(2)))
                    .as(test.group())
                    .isTrue());
  }

  @Test
  void everyCaseHasANameOfItsOwnAndATest() throws IOException {
    List<String> rows =
        Files.readAllLines(ROOT.resolve("docs/field-cases.md")).stream()
            .filter(ROW.asMatchPredicate().and(line -> !line.startsWith("| case ")))
            .filter(line -> !line.startsWith("| data "))
            .toList();
    assertThat(rows)
        .hasSizeGreaterThan(60)
        .allSatisfy(row -> assertThat(tests(row)).as(row).isNotEmpty());
    assertThat(rows.stream().map(row -> row.split("\\|")[1].strip())).doesNotHaveDuplicates();
  }

  @Test
  void noticesATestThatIsNotThere() throws IOException {
    String source = sources().get("FieldCasesTableTest");
    assertThat(isTest(source, "noticesATestThatIsNotThere")).isTrue();
    assertThat(isTest(source, "noticesATestThatWas")).isFalse();
  }
}
