package dev.lily.spring.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.lily.spring.Nano;
import dev.lily.spring.ai.LilyChatModel;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;

/** Contexts that come and go leave neither mappings nor threads behind. */
class ContextRestartTest {

  @TempDir Path directory;

  @Test
  @EnabledOnOs(OS.LINUX)
  void leavesNoMappingAndNoThreadAfterClosing() throws IOException {
    try (Stream<Path> files = Files.list(Nano.DIRECTORY)) {
      for (Path file : files.toList()) {
        Files.copy(file, directory.resolve(file.getFileName().toString()));
      }
    }
    ApplicationContextRunner runner =
        new ApplicationContextRunner()
            .withConfiguration(
                AutoConfigurations.of(
                    LilyEngineAutoConfiguration.class, LilyChatAutoConfiguration.class))
            .withPropertyValues(
                "lily.model=" + directory,
                "lily.context-length=128",
                "lily.chat.temperature=0",
                "lily.chat.thinking=false");
    List<Thread> before = engineThreads();
    for (int round = 0; round < 5; round++) {
      runner.run(
          context -> {
            assertThat(context.getBean(LilyChatModel.class).call("What is 60 - 16?"))
                .isEqualTo("60 - 16 = 44");
            assertThat(mappings()).isNotEmpty();
          });
    }
    assertThat(mappings()).isEmpty();
    // Workers end soon after the close, but nobody waits for them.
    await().untilAsserted(() -> assertThat(engineThreads()).isSubsetOf(before));
  }

  private List<String> mappings() throws IOException {
    try (Stream<String> lines = Files.lines(Path.of("/proc/self/maps"))) {
      return lines.filter(line -> line.contains(directory.toString())).toList();
    }
  }

  private static List<Thread> engineThreads() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().startsWith("lily"))
        .toList();
  }
}
