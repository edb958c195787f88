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
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/**
 * Models that come and go give back what they took, as the operating system counts it. In a JVM of
 * its own, whose heap is resident from the start, so that only the models change what is counted.
 */
@EnabledOnOs(OS.LINUX)
class RepeatedLoadTest {
  private static final int ROUNDS = 10;

  /** Until then the JVM itself still grows: classes, compiled code. */
  private static final int SETTLED = 3;

  /**
   * What the system counted in one round.
   *
   * @param taken resident bytes that the loaded model added
   * @param mapped bytes of its files that were mapped
   * @param left resident bytes after it was closed
   * @param leftMapped bytes of its files still mapped then
   */
  private record Round(long taken, long mapped, long left, long leftMapped) {
    static Round parse(String line) {
      String[] parts = line.split(" ");
      return new Round(
          Long.parseLong(parts[1]),
          Long.parseLong(parts[2]),
          Long.parseLong(parts[3]),
          Long.parseLong(parts[4]));
    }
  }

  @TempDir Path directory;

  @Test
  void nothingStaysMappedOrResident() throws IOException, InterruptedException {
    Path nano = Path.of(Objects.requireNonNull(System.getProperty("lily.nano.dir")));
    long weights = 0;
    try (Stream<Path> files = Files.list(nano)) {
      for (Path file : files.toList()) {
        Files.copy(file, directory.resolve(file.getFileName()));
        weights += file.toString().endsWith(".safetensors") ? Files.size(file) : 0;
      }
    }
    List<Round> rounds = loadInAnotherJvm();
    assertThat(rounds).hasSize(ROUNDS);
    for (Round round : rounds) {
      assertThat(round.mapped()).isGreaterThanOrEqualTo(weights);
      assertThat(round.taken()).as("what a load takes can be seen").isGreaterThan(weights / 2);
      assertThat(round.leftMapped()).isZero();
    }
    assertThat(rounds.getLast().left() - rounds.get(SETTLED - 1).left())
        .as("growth over %d loads, half of what they took: %s", ROUNDS - SETTLED, rounds)
        .isLessThan((ROUNDS - SETTLED) * rounds.getLast().taken() / 2);
  }

  private List<Round> loadInAnotherJvm() throws IOException, InterruptedException {
    Process process =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--add-modules=jdk.incubator.vector",
                "-Xms256m",
                "-Xmx256m",
                "-XX:+AlwaysPreTouch",
                "-XX:+UseSerialGC",
                "-cp",
                System.getProperty(
                    "surefire.test.class.path", System.getProperty("java.class.path")),
                Program.class.getName(),
                directory.toString())
            .redirectErrorStream(true)
            .start();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor()).as(output).isZero();
    return output.lines().filter(line -> line.startsWith("round ")).map(Round::parse).toList();
  }

  /** Runs in the other JVM. */
  static final class Program {
    public static void main(String[] args) throws IOException {
      Path directory = Path.of(args[0]);
      for (int round = 1; round <= ROUNDS; round++) {
        long before = residentBytes();
        long taken;
        long mapped;
        try (LilyEngine engine = LilyEngine.open(EngineOptions.builder(directory).build())) {
          engine.generate(
              GenerationRequest.builder(Conversation.of(new Message.User("What is 60 - 16?")))
                  .thinking(false)
                  .sampling(SamplingOptions.GREEDY)
                  .build());
          taken = residentBytes() - before;
          mapped = mappedBytes(directory);
        }
        System.out.printf(
            "round %d %d %d %d%n", taken, mapped, residentBytes(), mappedBytes(directory));
      }
    }

    private static long residentBytes() throws IOException {
      return Files.readAllLines(Path.of("/proc/self/status")).stream()
          .filter(line -> line.startsWith("VmRSS:"))
          .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")) << 10)
          .sum();
    }

    private static long mappedBytes(Path directory) throws IOException {
      return Files.readAllLines(Path.of("/proc/self/maps"), StandardCharsets.ISO_8859_1).stream()
          .filter(line -> line.contains(directory.toString()))
          .map(line -> line.substring(0, line.indexOf(' ')).split("-"))
          .mapToLong(range -> Long.parseLong(range[1], 16) - Long.parseLong(range[0], 16))
          .sum();
    }
  }
}
