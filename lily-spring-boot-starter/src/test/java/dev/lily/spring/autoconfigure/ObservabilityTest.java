package dev.lily.spring.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.lily.engine.generation.InvalidRequestException;
import dev.lily.spring.Nano;
import dev.lily.spring.ai.LilyChatModel;
import dev.lily.spring.ai.LilyChatOptions;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tag;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.ai.chat.prompt.Prompt;
import org.springframework.ai.model.chat.observation.autoconfigure.ChatObservationAutoConfiguration;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.micrometer.metrics.autoconfigure.CompositeMeterRegistryAutoConfiguration;
import org.springframework.boot.micrometer.metrics.autoconfigure.MetricsAutoConfiguration;
import org.springframework.boot.micrometer.metrics.autoconfigure.export.simple.SimpleMetricsExportAutoConfiguration;
import org.springframework.boot.micrometer.observation.autoconfigure.ObservationAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** Meters and logs of chats in an application with Boot's and Spring AI's observation. */
@Timeout(120)
@ExtendWith(OutputCaptureExtension.class)
class ObservabilityTest {

  private static final String QUESTION = "What is 60 - 16?";
  private static final String ANSWER = "60 - 16 = 44";

  /** Only where requests overflow to another model. */
  private static final Set<String> ON_DEMAND = Set.of("lily.overflow");

  private final ApplicationContextRunner runner =
      new ApplicationContextRunner()
          .withConfiguration(
              AutoConfigurations.of(
                  LilyEngineAutoConfiguration.class,
                  LilyChatAutoConfiguration.class,
                  LilyActuatorAutoConfiguration.class,
                  MetricsAutoConfiguration.class,
                  CompositeMeterRegistryAutoConfiguration.class,
                  SimpleMetricsExportAutoConfiguration.class,
                  ObservationAutoConfiguration.class,
                  ChatObservationAutoConfiguration.class))
          .withPropertyValues(
              "lily.model=" + Nano.DIRECTORY,
              "lily.context-length=512",
              "lily.max-sessions=1",
              "lily.chat.temperature=0",
              "lily.chat.thinking=false");

  /** A line such as <code>| `name` by `tag` (a, b), `tag` | counter |</code>. */
  private static final Pattern ROW =
      Pattern.compile("\\| `((?:lily|gen_ai)\\.[^`]+)`(?: by ([^|]*))? \\| (\\w+) \\|");

  private static final Pattern TAG = Pattern.compile("`([^`]+)`(?: \\(([^)]*)\\))?");

  private record Documented(String kind, Map<String, Set<String>> tags) {}

  private static Map<String, Documented> documented() throws IOException {
    Map<String, Documented> meters = new TreeMap<>();
    String page = Files.readString(Path.of("..", "docs", "spring.md"));
    Matcher row = ROW.matcher(page.substring(page.indexOf("## Meters and observations")));
    while (row.find()) {
      Map<String, Set<String>> tags = new TreeMap<>();
      Matcher tag = TAG.matcher(row.group(2) == null ? "" : row.group(2));
      while (tag.find()) {
        tags.put(tag.group(1), tag.group(2) == null ? Set.of() : Set.of(tag.group(2).split(", ")));
      }
      meters.put(row.group(1), new Documented(row.group(3), tags));
    }
    return meters;
  }

  private static Map<String, List<Meter>> registered(MeterRegistry registry) {
    Map<String, List<Meter>> meters = new TreeMap<>();
    for (Meter meter : registry.getMeters()) {
      String name = meter.getId().getName();
      if (name.startsWith("lily.") || name.startsWith("gen_ai.")) {
        meters.computeIfAbsent(name, any -> new ArrayList<>()).add(meter);
      }
    }
    return meters;
  }

  private static String kind(Meter meter) {
    return switch (meter.getId().getType()) {
      case COUNTER -> "counter";
      case GAUGE -> "gauge";
      case TIMER, LONG_TASK_TIMER -> "timer";
      case DISTRIBUTION_SUMMARY -> "summary";
      default -> throw new AssertionError(meter.getId());
    };
  }

  private static void assertAsDocumented(String name, List<Meter> meters, Documented documented) {
    Map<String, Set<String>> tags = new TreeMap<>();
    for (Meter meter : meters) {
      assertThat(kind(meter)).as(name).isEqualTo(documented.kind());
      for (Tag tag : meter.getId().getTags()) {
        tags.computeIfAbsent(tag.getKey(), any -> new TreeSet<>()).add(tag.getValue());
      }
    }
    assertThat(tags.keySet()).as(name).isEqualTo(documented.tags().keySet());
    documented
        .tags()
        .forEach(
            (tag, values) -> {
              if (!values.isEmpty()) {
                assertThat(tags.get(tag)).as(name + " by " + tag).isEqualTo(values);
              }
            });
  }

  @Test
  void hasTheMetersThatTheDocumentationLists() throws IOException {
    Map<String, Documented> documented = documented();
    assertThat(documented).hasSizeGreaterThan(8);
    runner.run(
        context -> {
          LilyChatModel model = context.getBean(LilyChatModel.class);
          model.call(QUESTION);
          model.stream(new Prompt(QUESTION)).blockLast();
          assertThatExceptionOfType(InvalidRequestException.class)
              .isThrownBy(
                  () ->
                      model.call(new Prompt("x", LilyChatOptions.builder().maxTokens(0).build())));

          MeterRegistry registry = context.getBean(MeterRegistry.class);
          Map<String, List<Meter>> registered = registered(registry);
          registered.forEach(
              (name, meters) -> {
                assertThat(documented).containsKey(name);
                assertAsDocumented(name, meters, documented.get(name));
              });
          Set<String> missing = new TreeSet<>(documented.keySet());
          missing.removeAll(registered.keySet());
          assertThat(missing).isSubsetOf(ON_DEMAND);

          assertThat(registry.get("lily.queue.time").timer().count()).isEqualTo(2);
          assertThat(registry.get("lily.time.to.first.token").timer().count()).isEqualTo(2);
          assertThat(registry.get("gen_ai.client.operation").tag("error", "none").timer().count())
              .isEqualTo(2);
          assertThat(
                  registry
                      .get("gen_ai.client.operation")
                      .tag("error", "InvalidRequestException")
                      .timer()
                      .count())
              .isEqualTo(1);
          assertThat(
                  registry
                      .get("gen_ai.client.token.usage")
                      .tag("gen_ai.token.type", "output")
                      .counter()
                      .count())
              .isEqualTo(
                  registry.get("lily.tokens").tag("type", "generated").functionCounter().count());
        });
  }

  @ParameterizedTest
  @CsvSource({"false, false", "true, false", "false, true", "true, true"})
  void logsPromptsAndAnswersOnlyWhereAsked(boolean prompt, boolean answer, CapturedOutput output) {
    runner
        .withPropertyValues(
            "spring.ai.chat.observations.log-prompt=" + prompt,
            "spring.ai.chat.observations.log-completion=" + answer)
        .run(
            context -> {
              LilyChatModel model = context.getBean(LilyChatModel.class);
              Stream.<Runnable>of(
                      () -> model.call(QUESTION),
                      () -> model.stream(new Prompt(QUESTION)).blockLast())
                  .forEach(
                      asking -> {
                        int before = output.getAll().length();
                        asking.run();
                        String logged = output.getAll().substring(before);
                        assertThat(logged.contains(QUESTION)).isEqualTo(prompt);
                        assertThat(logged.contains(ANSWER)).isEqualTo(answer);
                      });
            });
  }
}
