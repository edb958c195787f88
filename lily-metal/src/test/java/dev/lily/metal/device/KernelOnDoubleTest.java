package dev.lily.metal.device;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.lily.metal.msl.MslToolchain;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** One real kernel from its source to its result, through the same messages as on a Mac. */
class KernelOnDoubleTest extends MetalTestCase {
  private static final int ROWS = 3;
  private static final int COLUMNS = 64;
  private static final float EPS = 1e-6f;

  private ComputePipeline addNorm;
  private MetalBuffer x;
  private MetalBuffer branch;
  private MetalBuffer gain;
  private MetalBuffer n;
  private MemorySegment params;

  @BeforeEach
  void compile() {
    metal.useKernels();
    addNorm =
        gpu.device
            .compile("norm", MslToolchain.source("norm"), LanguageVersion.MSL_3_1, MathMode.SAFE)
            .pipeline("add_norm");
    x = gpu.device.buffer(ROWS * COLUMNS * Float.BYTES, StorageMode.SHARED);
    branch = gpu.device.buffer(ROWS * COLUMNS * Short.BYTES, StorageMode.SHARED);
    gain = gpu.device.buffer(COLUMNS * Float.BYTES, StorageMode.SHARED);
    n = gpu.device.buffer(ROWS * COLUMNS * Short.BYTES, StorageMode.SHARED);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
      x.contents().setAtIndex(JAVA_FLOAT, i, input(i));
      branch.contents().setAtIndex(JAVA_SHORT, i, (short) (Float.floatToIntBits(0.5f) >> 16));
      gain.contents().setAtIndex(JAVA_FLOAT, i % COLUMNS, 2);
    }
    params = arena.allocate(12);
    params.setAtIndex(JAVA_INT, 0, COLUMNS);
    params.setAtIndex(JAVA_INT, 1, 1);
    params.setAtIndex(JAVA_FLOAT, 2, EPS);
  }

  private static float input(int i) {
    return (float) Math.sin(i * 0.37) * 3;
  }

  /** x += branch in place; n = norm of x. */
  private void addNorm(ComputeEncoder encoder) {
    encoder.setPipeline(addNorm);
    encoder.setBuffer(0, x, 0);
    encoder.setBuffer(1, branch, 0);
    encoder.setBuffer(2, gain, 0);
    encoder.setBuffer(3, x, 0);
    encoder.setBuffer(4, n, 0);
    encoder.setBytes(5, params, 0, params.byteSize());
    encoder.dispatch(ROWS, 1, 1, 256, 1, 1);
  }

  @Test
  void givesTheRightNumbers() {
    ComputeEncoder encoder = gpu.begin(DispatchType.CONCURRENT);
    addNorm(encoder);
    encoder.end();
    gpu.run();
    for (int row = 0; row < ROWS; row++) {
      double squares = 0;
      for (int c = 0; c < COLUMNS; c++) {
        squares += Math.pow(input(row * COLUMNS + c) + 0.5, 2);
      }
      double scale = 2 / Math.sqrt(squares / COLUMNS + EPS);
      for (int c = 0; c < COLUMNS; c++) {
        int i = row * COLUMNS + c;
        float actual = Float.intBitsToFloat(n.contents().getAtIndex(JAVA_SHORT, i) << 16);
        assertThat((double) actual).isEqualTo((input(i) + 0.5) * scale, within(0.02));
        assertThat(x.contents().getAtIndex(JAVA_FLOAT, i)).isEqualTo(input(i) + 0.5f);
      }
    }
  }

  @Test
  void needsABarrierBeforeItsResultIsUsed() {
    ComputeEncoder encoder = gpu.begin(DispatchType.CONCURRENT);
    addNorm(encoder);
    addNorm(encoder);
    encoder.end();
    gpu.run();
    assertThat(metal.takeViolations()).singleElement().asString().contains("add_norm");
  }

  @Test
  void isOrderedByABarrier() {
    ComputeEncoder encoder = gpu.begin(DispatchType.CONCURRENT);
    addNorm(encoder);
    encoder.barrier();
    addNorm(encoder);
    encoder.end();
    gpu.run();
    assertThat(metal.violations()).isEmpty();
    assertThat(metal.notes()).isEmpty();
    assertThat(x.contents().get(JAVA_FLOAT, 0)).isEqualTo(input(0) + 1);
  }
}
