package dev.lily.sample.clients;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.extension.ExtendWith;
import org.slf4j.LoggerFactory;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;

/**
 * The clients published on npm, as {@code src/test/node} uses them. Without Node.js 20 or later and
 * npm they are skipped, with the reason; with {@code LILY_REQUIRE_NODE=true} that is a failure.
 */
@ExtendWith(SampleServer.Provider.class)
class NodeClientsIT {
  private static final Path SOURCES = Path.of("src", "test", "node");
  private static final Path DIRECTORY = Path.of("target", "node");
  private static final String LOCK = "package-lock.json";
  private static final int MINUTES = 5;
  private static final int OLDEST_NODE = 20;

  private final SampleServer server;

  NodeClientsIT(SampleServer server) {
    this.server = server;
  }

  /** Every test of Node's runner as one of JUnit's. */
  @TestFactory
  Stream<DynamicTest> clients() throws Exception {
    String node = find("node");
    String npm = find("npm");
    requireCurrent(node);
    if (copySources() || !Files.isDirectory(DIRECTORY.resolve("node_modules"))) {
      run("install.txt", 0, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund");
    }
    Path report = DIRECTORY.resolve("report.xml");
    Files.deleteIfExists(report);
    List<String> command = new ArrayList<>();
    command.addAll(List.of(node, "--test", "--test-concurrency=1"));
    command.addAll(
        List.of("--test-reporter=junit", "--test-reporter-destination=" + report.getFileName()));
    command.addAll(List.of("--test-reporter=spec", "--test-reporter-destination=stdout"));
    try (Stream<Path> files = Files.list(DIRECTORY)) {
      files
          .map(file -> file.getFileName().toString())
          .filter(name -> name.endsWith(".test.mjs"))
          .sorted()
          .forEach(command::add);
    }
    run("report.txt", -1, command.toArray(String[]::new));
    return tests(report);
  }

  /**
   * Copies the sources, so that what npm installs lies among what is built.
   *
   * @return whether the lock file is another one than last time
   */
  private static boolean copySources() throws IOException {
    Files.createDirectories(DIRECTORY);
    Path lock = DIRECTORY.resolve(LOCK);
    boolean changed = !Files.exists(lock) || Files.mismatch(lock, SOURCES.resolve(LOCK)) >= 0;
    try (Stream<Path> old = Files.list(DIRECTORY)) {
      for (Path file : old.filter(file -> file.toString().endsWith(".mjs")).toList()) {
        Files.delete(file);
      }
    }
    try (Stream<Path> sources = Files.list(SOURCES)) {
      for (Path source : sources.filter(Files::isRegularFile).toList()) {
        Path target = DIRECTORY.resolve(source.getFileName());
        Files.write(target, Files.readAllBytes(source));
      }
    }
    return changed;
  }

  /**
   * Runs a command, whose output goes to a file.
   *
   * @param expected its exit status; -1 for any
   */
  private void run(String outputFile, int expected, String... command)
      throws IOException, InterruptedException {
    Path output = DIRECTORY.resolve(outputFile);
    ProcessBuilder builder =
        new ProcessBuilder(command)
            .directory(DIRECTORY.toFile())
            .redirectErrorStream(true)
            .redirectOutput(output.toFile());
    builder.environment().put("LILY_SERVER", server.url());
    builder.environment().put("LILY_KEY", SampleServer.KEY);
    Process process = builder.start();
    if (!process.waitFor(MINUTES, TimeUnit.MINUTES)) {
      process.destroyForcibly();
      throw new AssertionError("Still running after %d min: %s".formatted(MINUTES, output));
    }
    if (expected >= 0) {
      assertThat(process.exitValue()).as(Files.readString(output)).isEqualTo(expected);
    }
  }

  private static Stream<DynamicTest> tests(Path report) throws Exception {
    NodeList cases =
        DocumentBuilderFactory.newDefaultInstance()
            .newDocumentBuilder()
            .parse(report.toFile())
            .getElementsByTagName("testcase");
    assertThat(cases.getLength()).as("tests of Node's runner").isGreaterThan(15);
    List<DynamicTest> tests = new ArrayList<>();
    for (int i = 0; i < cases.getLength(); i++) {
      Element one = (Element) cases.item(i);
      Element suite = (Element) one.getParentNode();
      NodeList failures = one.getElementsByTagName("failure");
      boolean skipped = one.getElementsByTagName("skipped").getLength() > 0;
      tests.add(
          DynamicTest.dynamicTest(
              suite.getAttribute("name") + ": " + one.getAttribute("name"),
              () -> {
                assertThat(skipped).as("was skipped").isFalse();
                if (failures.getLength() > 0) {
                  Assertions.fail(failures.item(0).getTextContent());
                }
              }));
    }
    return tests.stream();
  }

  private static String find(String program) {
    List<String> names = List.of(program, program + ".exe", program + ".cmd");
    Optional<Path> found =
        Arrays.stream(
                System.getenv().getOrDefault("PATH", "").split(Pattern.quote(File.pathSeparator)))
            .flatMap(directory -> names.stream().map(name -> Path.of(directory, name)))
            .filter(Files::isExecutable)
            .findFirst();
    if (found.isPresent()) {
      return found.get().toString();
    }
    return without("The PATH has no %s.".formatted(program));
  }

  private static void requireCurrent(String node) throws IOException, InterruptedException {
    Process process = new ProcessBuilder(node, "--version").redirectErrorStream(true).start();
    String version = new String(process.getInputStream().readAllBytes(), UTF_8).strip();
    process.waitFor();
    Matcher major = Pattern.compile("v(\\d+)\\..*").matcher(version);
    if (!major.matches() || Integer.parseInt(major.group(1)) < OLDEST_NODE) {
      without("Node.js is %s, and the clients need %d.".formatted(version, OLDEST_NODE));
    }
  }

  private static String without(String reason) {
    if (Boolean.parseBoolean(System.getenv("LILY_REQUIRE_NODE"))) {
      return Assertions.fail(reason);
    }
    LoggerFactory.getLogger(NodeClientsIT.class)
        .warn("Tests of npm clients are skipped. {}", reason);
    return Assumptions.abort(reason);
  }
}
