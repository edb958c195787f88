package dev.lily.metal.msl;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.metal.msl.CpuKernels.Geometry;
import dev.lily.metal.msl.CpuKernels.Result;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The CPU run itself: it must catch what it is for. */
class CpuRunTest {
  private static final Path FAULTY = Path.of("src/test/resources/dev/lily/metal/msl/faulty.metal");

  private static final class Built {
    static final CpuKernels FAULTY_KERNELS = build();

    private static CpuKernels build() {
      try {
        String source = Files.readString(FAULTY);
        return CpuKernels.load(
            Tools.toolchain().build("faulty", List.of(new MslToolchain.Unit("faulty", source))));
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
}
