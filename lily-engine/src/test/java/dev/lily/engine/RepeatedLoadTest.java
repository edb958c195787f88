package dev.lily.engine;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.chat.Conversation;
import dev.lily.engine.chat.Message;
import dev.lily.engine.generation.GenerationRequest;
import dev.lily.engine.sampling.SamplingOptions;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Objects;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/** Models that come and go give back what they took, as the operating system counts it. */
@EnabledOnOs(OS.LINUX)
class RepeatedLoadTest {
  private static final int ROUNDS = 10;

  /** Until then the JVM itself still grows: classes, compiled code, heap. */
  private static final int SETTLED = 3;

  @TempDir Path directory;

  @Test
  void nothingStaysMappedOrResident() throws IOException {
    Path nano = Path.of(Objects.requireNonNull(System.getProperty("lily.nano.dir")));
    try (Stream<Path> files = Files.list(nano)) {
      for (Path file : files.toList()) {
        Files.copy(file, directory.resolve(file.getFileName()));
      }
    }
    long settled = 0;
    long perLoad = 0;
    for (int round = 1; round <= ROUNDS; round++) {
      long before = residentBytes();
      try (LilyEngine engine = LilyEngine.open(EngineOptions.builder(directory).build())) {
        engine.generate(
            GenerationRequest.builder(Conversation.of(new Message.User("What is 60 - 16?")))
                .thinking(false)
                .sampling(SamplingOptions.builder().temperature(0.0).build())
                .build());
        perLoad = engine.memoryPlan().totalBytes();
        assertThat(mappedBytes()).isGreaterThanOrEqualTo(engine.model().weightBytes());
        assertThat(residentBytes() - before)
            .as("what a load takes can be seen")
            .isGreaterThan(perLoad / 2);
      }
      assertThat(mappedBytes()).isZero();
      if (round == SETTLED) {
        settled = residentBytes();
      }
    }
    assertThat(residentBytes() - settled)
        .as("growth over %d loads, in which one of them that stays would show", ROUNDS - SETTLED)
        .isLessThan(perLoad / 2);
  }

  private static long residentBytes() throws IOException {
    System.gc();
    return Files.readAllLines(Path.of("/proc/self/status")).stream()
        .filter(line -> line.startsWith("VmRSS:"))
        .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")) << 10)
        .sum();
  }

  /** Of files in the directory. */
  private long mappedBytes() throws IOException {
    return Files.readAllLines(Path.of("/proc/self/maps"), StandardCharsets.ISO_8859_1).stream()
        .filter(line -> line.contains(directory.toString()))
        .map(line -> line.substring(0, line.indexOf(' ')).split("-"))
        .mapToLong(range -> Long.parseLong(range[1], 16) - Long.parseLong(range[0], 16))
        .sum();
  }
}
