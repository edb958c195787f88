package dev.lily.metal.msl;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.metal.msl.CpuKernels.Geometry;
import dev.lily.metal.msl.CpuKernels.Result;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The CPU run itself: it must catch what it is for. */
class CpuRunTest {
  private static final Path SOURCES = Path.of("src/test/resources/dev/lily/metal/msl");

  private static final class Built {
    static final CpuKernels FAULTY_KERNELS = build();

    private static CpuKernels build() {
      try {
        List<MslToolchain.Unit> units = new ArrayList<>();
        for (String name : List.of("faulty", "faulty_tensor")) {
          units.add(
              new MslToolchain.Unit(name, Files.readString(SOURCES.resolve(name + ".metal"))));
        }
        return CpuKernels.load(Tools.toolchain().build("faulty", units));
      } catch (IOException e) {
        throw new IllegalStateException(e);
      }
    }
  }

  private static CpuKernels faulty() {
    Tools.toolchain();
    return Built.FAULTY_KERNELS;
  }

  @ParameterizedTest
  @CsvSource({
    "barrier_by_half, 5",
    "two_barriers, 5",
    "simd_sum_by_half, 5",
    "lacks_a_barrier, 6",
    "lacks_the_second_barrier, 6",
    "counts_on_lockstep, 6",
    "writes_past_the_end, 3",
    "overruns_threadgroup_memory, 3",
    "within_a_simdgroup, 0",
  })
  void catchesAFaultInEveryOrder(String kernel, int status) {
    for (int order : CpuKernels.ORDERS) {
      MemorySegment y = Data.poisonedF32(64);
      Result result = faulty().inOrder(order).run(kernel, Geometry.of(1, 64), y);
      assertThat(result.status()).as(result.message()).isEqualTo(status);
      if (status != 0) {
        assertThat(result.message()).startsWith(kernel + ", threadgroup (0, 0, 0)");
      }
    }
  }

  @Test
  void namesTheBufferThatIsReadPastItsEnd() {
    Result result =
        faulty()
            .run(
                "reads_past_the_end",
                Geometry.of(2, 32),
                Data.f32(new float[64]),
                Data.poisonedF32(64));
    assertThat(result.status()).isEqualTo(CpuKernels.OUT_OF_BOUNDS);
    assertThat(result.message())
        .isEqualTo(
            "reads_past_the_end, threadgroup (1, 0, 0), thread 31: read of 4 bytes at byte 256 of x, which has 256");
  }

  @Test
  void refusesAMisalignedVector() {
    Result result =
        faulty()
            .run(
                "loads_a_misaligned_vector",
                Geometry.of(1, 32),
                Data.f32(new float[64]),
                Data.poisonedF32(128));
    assertThat(result.status()).isEqualTo(CpuKernels.MISALIGNED);
  }

  @Test
  void noticesTwoThreadgroupsThatWriteTheSameWord() {
    Result result = faulty().run("two_groups_one_word", Geometry.of(2, 32), Data.poisonedF32(1));
    assertThat(result.status()).isEqualTo(CpuKernels.RACE);
  }

  @Test
  void startsEveryThreadgroupWithPoisonedMemory() {
    MemorySegment y = Data.poisonedF32(64);
    faulty().dispatch("reads_unwritten", Geometry.of(1, 64), y);
    assertThat(Data.readF32(y)[31]).isEqualTo(1);
    assertThat(Data.readF32(y)[32]).isNaN();
  }

  /** {@code y} of a product of ones, 13 rows by 64 columns, with twos, 32 rows. */
  private static Result tensorProduct(String kernel, int order, MemorySegment y) {
    float[] ones = new float[13 * 64];
    float[] twos = new float[32 * 64];
    Arrays.fill(ones, 1);
    Arrays.fill(twos, 2);
    return faulty()
        .inOrder(order)
        .run(kernel, Geometry.of(1, 32), Data.bf16(ones), Data.bf16(twos), y);
  }

  @Test
  void multipliesTensorsOnTopOfWhatIsThereAndTakesAbsentRowsForZero() {
    for (int order : CpuKernels.ORDERS) {
      MemorySegment y = Data.poisonedF32(16 * 32);
      assertThat(tensorProduct("multiplies", order, y).message()).isEmpty();
      float[] out = Data.readF32(y);
      assertThat(Arrays.copyOf(out, 13 * 32)).containsOnly(129);
      assertThat(Arrays.copyOfRange(out, 13 * 32, 16 * 32)).containsOnly(1);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "reads_rows_that_are_not_there, 3",
    "multiplies_without_a_barrier, 6",
    "multiplies_by_half, 5",
  })
  void catchesAFaultyTensorProductInEveryOrder(String kernel, int status) {
    for (int order : CpuKernels.ORDERS) {
      Result result = tensorProduct(kernel, order, Data.poisonedF32(16 * 32));
      assertThat(result.status()).as(result.message()).isEqualTo(status);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"adds_to_what_was_never_set", "stores_what_is_not_valid"})
  void poisonsWhatATensorProductDoesNotMake(String kernel) {
    MemorySegment y = Data.poisonedF32(16 * 32);
    tensorProduct(kernel, 0, y);
    assertThat(Data.readF32(y)).contains(Float.NaN);
  }
}
