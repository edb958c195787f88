package dev.lily.engine.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.sun.management.ThreadMXBean;
import dev.lily.engine.checkpoint.BadCheckpoints.Expectation;
import dev.lily.engine.checkpoint.BadCheckpoints.Variant;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class DamagedCheckpointTest {
  private static final Path MAPS = Path.of("/proc/self/maps");

  @TempDir Path temporary;

  static Stream<Variant> usable() {
    return BadCheckpoints.variants().filter(it -> it.expectation() instanceof Expectation.Opens);
  }

  static Stream<Variant> damaged() {
    return BadCheckpoints.variants().filter(it -> it.expectation() instanceof Expectation.Refused);
  }

  @Test
  void knowsEveryVariant() {
    assertThat(BadCheckpoints.variants().map(Variant::name))
        .hasSizeGreaterThanOrEqualTo(49)
        .doesNotHaveDuplicates();
    assertThat(usable()).hasSizeGreaterThanOrEqualTo(9);
  }

  @ParameterizedTest
  @MethodSource("usable")
  void opensWithTheSameValuesAndANoteOnEachOddity(Variant variant) throws IOException {
    try (Checkpoint checkpoint = Checkpoint.open(variant.writeBelow(temporary))) {
      List<String> expected = ((Expectation.Opens) variant.expectation()).notes();
      assertThat(checkpoint.notes()).hasSameSizeAs(expected);
      for (int i = 0; i < expected.size(); i++) {
        assertThat(checkpoint.notes().get(i)).contains(expected.get(i));
      }
      assertThat(CheckpointValues.floats(checkpoint.tensor("model.embed_tokens.weight")))
          .isEqualTo(BadCheckpoints.embeddings());
      assertThat(CheckpointValues.groups(checkpoint, BadCheckpoints.GATE))
          .usingRecursiveComparison()
          .isEqualTo(BadCheckpoints.gate());
      assertThat(CheckpointValues.groups(checkpoint, BadCheckpoints.UP_PROJ))
          .usingRecursiveComparison()
          .isEqualTo(BadCheckpoints.upProj());
    }
  }

  @ParameterizedTest
  @MethodSource("damaged")
  void refusesWithTheReasonAndUnmapsEverything(Variant variant) throws IOException {
    Path directory = variant.writeBelow(temporary);
    Expectation.Refused refused = (Expectation.Refused) variant.expectation();

    CheckpointException e =
        catchThrowableOfType(CheckpointException.class, () -> Checkpoint.open(directory));

    assertThat(e).isNotNull();
    assertThat(e.kind()).isEqualTo(refused.kind());
    assertThat(e).hasMessageContaining(directory.toString());
    assertThat(e.getMessage()).contains(refused.texts());
    assertThat(e.file()).hasParent(directory);
    assertThat(mappedFilesBelow(directory)).isEmpty();
    for (String name : variant.files().keySet()) {
      Files.delete(directory.resolve(name));
    }
  }

  @ParameterizedTest
  @MethodSource("damaged")
  void allocatesLittleBeforeItRefuses(Variant variant) throws IOException {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    assumeTrue(threads.isThreadAllocatedMemorySupported());
    Path directory = variant.writeBelow(temporary);
    catchThrowableOfType(CheckpointException.class, () -> Checkpoint.open(directory));

    long before = threads.getCurrentThreadAllocatedBytes();
    catchThrowableOfType(CheckpointException.class, () -> Checkpoint.open(directory));

    assertThat(threads.getCurrentThreadAllocatedBytes() - before).isLessThan(4 << 20);
  }

  @Test
  void mapsEachShardWholeUntilClosed() throws IOException {
    Path directory = BadCheckpoints.variant("good").writeBelow(temporary);
    Checkpoint checkpoint = Checkpoint.open(directory);
    List<String> whileOpen = mappedFilesBelow(directory);
    checkpoint.close();

    assertThat(mappedFilesBelow(directory)).isEmpty();
    assumeTrue(Files.exists(MAPS));
    assertThat(whileOpen).containsExactlyInAnyOrder(BadCheckpoints.SHARD_1, BadCheckpoints.SHARD_2);
  }

  @Test
  void readsTheScalarBehindThreeOddBytes() throws IOException {
    Path directory = BadCheckpoints.variant("good_scalar").writeBelow(temporary);
    try (Checkpoint checkpoint = Checkpoint.open(directory)) {
      TensorEntry scalar = checkpoint.tensor("model.scalar");

      assertThat(scalar.shape()).isEmpty();
      assertThat(CheckpointValues.floats(scalar)).containsExactly(2.5f);
    }
  }

  @Test
  void keepsATensorWithoutElements() throws IOException {
    Path directory = BadCheckpoints.variant("good_zero_size_tensor").writeBelow(temporary);
    try (Checkpoint checkpoint = Checkpoint.open(directory)) {
      assertThat(checkpoint.tensor("model.zero.weight").shape()).containsExactly(0L, 4L);
      assertThat(checkpoint.tensor("model.zero.weight").data().byteSize()).isZero();
    }
  }

  @Test
  void leavesOutATensorThatTheIndexDoesNotName() throws IOException {
    Path directory = BadCheckpoints.variant("shard_tensor_not_in_index").writeBelow(temporary);
    try (Checkpoint checkpoint = Checkpoint.open(directory)) {
      assertThat(checkpoint.tensorNames())
          .contains(BadCheckpoints.NORM)
          .doesNotContain(BadCheckpoints.TAIL);
    }
  }

  /** Names of the files in a directory that this process maps; empty where it cannot be known. */
  private static List<String> mappedFilesBelow(Path directory) throws IOException {
    if (!Files.exists(MAPS)) {
      return List.of();
    }
    String prefix = directory.toRealPath() + "/";
    return Files.readAllLines(MAPS, StandardCharsets.ISO_8859_1).stream()
        .filter(line -> line.contains(prefix))
        .map(line -> line.substring(line.indexOf(prefix) + prefix.length()))
        .distinct()
        .toList();
  }
}
