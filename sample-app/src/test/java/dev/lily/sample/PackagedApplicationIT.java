package dev.lily.sample;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** The application as {@code java -jar} runs it. */
class PackagedApplicationIT {

  private static final String VECTOR = "--add-modules=jdk.incubator.vector";
  private static final Pattern PORT = Pattern.compile("started on port (\\d+)");
  private static final int TERMINATED = 143;

  @Test
  void startsWithVectorKernelsAndWithoutWarnings() throws Exception {
    try (RunningJar jar = RunningJar.start(VECTOR)) {
      assertThat(jar.ask()).contains("47 + 38 = 85");
      assertThat(jar.stop())
          .filteredOn(line -> line.contains("WARN"))
          .containsExactly("WARNING: Using incubator modules: jdk.incubator.vector");
    }
  }

  @Test
  void startsWhereNativeAccessIsDeniedUnlessAllowed() throws Exception {
    try (RunningJar jar = RunningJar.start(VECTOR, "--illegal-native-access=deny")) {
      assertThat(jar.ask()).contains("47 + 38 = 85");
      assertThat(jar.stop()).noneMatch(line -> line.contains("ERROR"));
    }
  }

  @Test
  void runsOnScalarKernelsWithoutTheVectorModuleAndSaysSoOnce() throws Exception {
    try (RunningJar jar = RunningJar.start()) {
      assertThat(jar.ask()).contains("47 + 38 = 85");
      assertThat(jar.stop())
          .filteredOn(line -> line.contains("WARN"))
          .singleElement()
          .asString()
          .contains("--add-modules")
          .contains("jdk.incubator.vector");
    }
  }

  /** A process with the application, and what it has printed. */
  private static final class RunningJar implements AutoCloseable {

    private final Process process;
    private final BufferedReader output;
    private final List<String> lines = new ArrayList<>();
    private int port;

    private RunningJar(Process process) {
      this.process = process;
      this.output = process.inputReader();
    }

    /** Starts the jar on a free port and waits until it serves. */
    static RunningJar start(String... options) throws IOException {
      List<String> command = new ArrayList<>();
      command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
      command.addAll(List.of(options));
      command.addAll(List.of("-jar", System.getProperty("lily.sample.jar"), "--server.port=0"));
      ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
      // They would add options, and lines to the output.
      builder.environment().keySet().removeAll(List.of("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS"));
      RunningJar jar = new RunningJar(builder.start());
      jar.awaitStart();
      return jar;
    }

    private void awaitStart() throws IOException {
      String line;
      while ((line = output.readLine()) != null) {
        lines.add(line);
        Matcher started = PORT.matcher(line);
        if (started.find()) {
          port = Integer.parseInt(started.group(1));
        }
        if (line.contains("Started SampleApplication")) {
          return;
        }
      }
      throw new AssertionError("The application ended:\n" + String.join("\n", lines));
    }

    String ask() throws IOException, InterruptedException {
      URI uri =
          URI.create("http://127.0.0.1:" + port + "/api/ask?question=What%20is%2047%20%2B%2038%3F");
      try (HttpClient client = HttpClient.newHttpClient()) {
        return client.send(HttpRequest.newBuilder(uri).build(), BodyHandlers.ofString()).body();
      }
    }

    /** Ends the application in good order and returns all that it printed. */
    List<String> stop() throws IOException, InterruptedException {
      process.toHandle().destroy(); // Process.destroy would close the output, too
      output.lines().forEach(lines::add);
      assertThat(process.waitFor()).isEqualTo(TERMINATED);
      return lines;
    }

    @Override
    public void close() throws IOException {
      process.destroyForcibly().onExit().join();
      output.close();
    }
  }
}
