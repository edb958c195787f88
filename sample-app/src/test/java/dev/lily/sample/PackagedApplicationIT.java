package dev.lily.sample;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

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

  /** The web server alone would wait for endless streams for longer than the test may take. */
  @Test
  @Timeout(120)
  void endsOpenStreamsInGoodOrderWhenItIsTerminated() throws Exception {
    String[] options = {
      VECTOR,
      "-Dlily.max-sessions=3",
      "-Dlily.shutdown-grace=4s",
      "-Dspring.lifecycle.timeout-per-shutdown-phase=10m"
    };
    try (RunningJar jar = RunningJar.start(options);
        HttpClient client = HttpClient.newHttpClient()) {
      List<OpenStream> endless =
          List.of(OpenStream.of(client, jar, 8000), OpenStream.of(client, jar, 8000));
      OpenStream brief = OpenStream.of(client, jar, 60);
      CompletableFuture<HttpResponse<String>> waiting =
          client.sendAsync(OpenStream.request(jar, 8000, false), BodyHandlers.ofString());
      while (!jar.get("/actuator/lily").contains("\"queued\":1")) {
        assertThat(waiting).isNotDone();
      }
      jar.terminate();
      HttpResponse<String> late =
          client.send(OpenStream.request(jar, 8000, false), BodyHandlers.ofString());
      assertThat(late.statusCode()).isEqualTo(503);
      assertThat(brief.toEnd()).contains("\"finish_reason\":\"length\"").contains("data: [DONE]");
      assertThat(waiting.join().statusCode()).isEqualTo(503);
      for (OpenStream stream : endless) {
        assertThat(stream.toEnd())
            .contains("data: {\"error\":")
            .contains("\"code\":\"service_unavailable\"")
            .doesNotContain("\"finish_reason\":\"")
            .doesNotContain("[DONE]");
      }
      assertThat(jar.awaitEnd()).noneMatch(line -> line.contains(" ERROR "));
    }
  }

  /** A stream of which the first token has come. */
  private record OpenStream(Iterator<String> lines, StringBuilder read) {

    static OpenStream of(HttpClient client, RunningJar jar, int tokens)
        throws IOException, InterruptedException {
      HttpResponse<Stream<String>> response =
          client.send(request(jar, tokens, true), BodyHandlers.ofLines());
      assertThat(response.statusCode()).isEqualTo(200);
      OpenStream stream = new OpenStream(response.body().iterator(), new StringBuilder());
      stream.read.append(stream.lines.next());
      return stream;
    }

    static HttpRequest request(RunningJar jar, int tokens, boolean stream) {
      String body =
          """
          {"stream":%b,"min_tokens":%d,"max_tokens":%d,
           "messages":[{"role":"user","content":"Tell me a story."}]}"""
              .formatted(stream, tokens, tokens);
      return HttpRequest.newBuilder(jar.uri("/v1/chat/completions"))
          .header("Content-Type", "application/json")
          .POST(HttpRequest.BodyPublishers.ofString(body))
          .build();
    }

    String toEnd() {
      lines.forEachRemaining(line -> read.append(line).append('\n'));
      return read.toString();
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

    URI uri(String path) {
      return URI.create("http://127.0.0.1:" + port + path);
    }

    String get(String path) throws IOException, InterruptedException {
      try (HttpClient client = HttpClient.newHttpClient()) {
        return client
            .send(HttpRequest.newBuilder(uri(path)).build(), BodyHandlers.ofString())
            .body();
      }
    }

    String ask() throws IOException, InterruptedException {
      return get("/api/ask?question=What%20is%2047%20%2B%2038%3F");
    }

    /** Ends the application and returns all that it printed. */
    List<String> stop() throws InterruptedException {
      terminate();
      return awaitEnd();
    }

    /** Asks the application to end in good order. */
    void terminate() {
      process.toHandle().destroy(); // Process.destroy would close the output, too
    }

    List<String> awaitEnd() throws InterruptedException {
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
