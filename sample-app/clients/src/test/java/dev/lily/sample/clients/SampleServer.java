package dev.lily.sample.clients;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.io.BufferedReader;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * The packaged sample application with lily-nano, in a process of its own at a free port and with a
 * key. One serves all tests; as a parameter resolver this class hands it out.
 */
final class SampleServer implements AutoCloseable {
  static final String MODEL = "lily-nano-4bit";
  static final String KEY = "open-sesame";

  /** An answer with this many tokens at least outlasts every test. */
  static final int ENDLESS = 7000;

  private static final Pattern PORT = Pattern.compile("started on port (\\d+)");
  private static final Pattern MEASURED = Pattern.compile("\"value\":([0-9.]+)");
  private static final Duration PATIENCE = Duration.ofSeconds(10);

  private final HttpClient http = HttpClient.newHttpClient();
  private final CountDownLatch started = new CountDownLatch(1);
  private final List<String> output = new ArrayList<>();
  private final Process process;
  private volatile int port;

  private SampleServer(Process process) {
    this.process = process;
    Thread.ofVirtual().start(this::readOutput);
  }

  private static SampleServer start() {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("--add-modules=jdk.incubator.vector", "-Xmx1g"));
    command.addAll(List.of("-jar", System.getProperty("lily.sample.jar")));
    command.addAll(
        List.of(
            "--server.port=0",
            "--lily.model=" + System.getProperty("lily.nano.dir"),
            "--lily.openai.api-keys=" + KEY));
    try {
      SampleServer server =
          new SampleServer(new ProcessBuilder(command).redirectErrorStream(true).start());
      if (!server.started.await(2, TimeUnit.MINUTES) || server.port == 0) {
        server.close();
        throw new AssertionError("The sample did not start:\n" + server.output());
      }
      return server;
    } catch (IOException | InterruptedException e) {
      throw new AssertionError("The sample could not be started", e);
    }
  }

  private void readOutput() {
    try (BufferedReader reader = process.inputReader()) {
      String line;
      while ((line = reader.readLine()) != null) {
        synchronized (output) {
          output.add(line);
        }
        Matcher at = PORT.matcher(line);
        if (at.find()) {
          port = Integer.parseInt(at.group(1));
        }
        if (line.contains("Started SampleApplication")) {
          started.countDown();
        }
      }
    } catch (IOException e) {
      throw new AssertionError(e);
    } finally {
      started.countDown();
    }
  }

  private String output() {
    synchronized (output) {
      return String.join("\n", output);
    }
  }

  String url() {
    return "http://127.0.0.1:" + port;
  }

  /** What clients call the base URL. */
  String apiUrl() {
    return url() + "/v1";
  }

  /** A step of a test that may fail in any way. */
  @FunctionalInterface
  interface Step {
    void run() throws Exception;
  }

  /** Runs what lets a client go away in the middle of an answer, and sees that the engine stops. */
  void stopsWhen(Step goAway) throws Exception {
    double before = cancelled();
    goAway.run();
    await("the engine stops")
        .atMost(PATIENCE)
        .untilAsserted(
            () -> {
              assertThat(cancelled()).isEqualTo(before + 1);
              assertThat(active()).isZero();
            });
  }

  void awaitActive() {
    await("the engine begins").atMost(PATIENCE).until(() -> active() == 1);
  }

  double completed() {
    return metric("lily.requests?tag=outcome:completed");
  }

  private double cancelled() {
    return metric("lily.requests?tag=outcome:cancelled");
  }

  private double active() {
    return metric("lily.sessions.active");
  }

  /** The first measurement of a meter; 0 if there is none yet. */
  private double metric(String path) {
    HttpRequest request =
        HttpRequest.newBuilder(URI.create(url() + "/actuator/metrics/" + path)).build();
    try {
      HttpResponse<String> response = http.send(request, BodyHandlers.ofString());
      if (response.statusCode() == 404) {
        return 0;
      }
      Matcher measured = MEASURED.matcher(response.body());
      assertThat(measured.find()).as(response.body()).isTrue();
      return Double.parseDouble(measured.group(1));
    } catch (IOException | InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  @Override
  public void close() {
    http.close();
    process.destroyForcibly().onExit().join();
  }

  /** Hands out the one server. */
  static final class Provider implements ParameterResolver {
    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
      return parameter.getParameter().getType() == SampleServer.class;
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
      return context
          .getRoot()
          .getStore(ExtensionContext.Namespace.GLOBAL)
          .computeIfAbsent(SampleServer.class, _ -> start());
    }
  }
}
