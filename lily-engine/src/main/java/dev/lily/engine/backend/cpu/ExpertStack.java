package dev.lily.engine.backend.cpu;

import dev.lily.engine.backend.Matrix;
import dev.lily.engine.backend.cpu.kernel.CpuMatrix;
import dev.lily.engine.backend.cpu.kernel.MatmulKernels;
import dev.lily.engine.backend.cpu.kernel.PackedMatrix;
import dev.lily.engine.backend.cpu.kernel.RowView;
import java.util.Arrays;

/**
 * A stack of experts, with the activations between an expert's matrices. Places number the rows
 * that go through it, those of one expert together.
 */
final class ExpertStack {
  private final Compute compute;
  private final int width;
  private final int hiddenSize;
  private final int arrangedStride;
  private final float[] gated;
  private final float[] raised;
  private final float[] arranged;
  private final float[] contributions;
  private final int[] places;
  private final RowView gateInput = new RowView();
  private final RowView upInput = new RowView();
  private final RowView gateOutput = new RowView();
  private final RowView upOutput = new RowView();
  private final RowView downInput = new RowView();
  private final RowView downOutput = new RowView();
  private CpuMatrix gate = CpuMatrix.NONE;
  private CpuMatrix up = CpuMatrix.NONE;
  private CpuMatrix down = CpuMatrix.NONE;

  /**
   * @param width an expert's intermediate size
   */
  ExpertStack(Compute compute, int maxPlaces, int width, int hiddenSize) {
    this.compute = compute;
    this.width = width;
    this.hiddenSize = hiddenSize;
    arrangedStride = MatmulKernels.arrangedSize(width);
    gated = Compute.scratch((long) maxPlaces * width);
    raised = Compute.scratch((long) maxPlaces * width);
    arranged = Compute.scratch((long) maxPlaces * arrangedStride);
    contributions = Compute.scratch((long) maxPlaces * hiddenSize);
    places = new int[maxPlaces];
    Arrays.setAll(places, i -> i);
  }

  /** Elements of the buffers of one place. */
  static long elementsPerPlace(int width, int hiddenSize) {
    return 2L * width + MatmulKernels.arrangedSize(width) + hiddenSize;
  }

  /**
   * Takes up a layer's weights and the current input of {@code projections}.
   *
   * @param inputRow row of the input that each place reads
   * @param contribution row of {@link #contributions} that each place writes
   */
  void begin(
      Matrix gate,
      Matrix up,
      Matrix down,
      Projections projections,
      int[] inputRow,
      int[] contribution) {
    this.gate = CpuMatrix.of(gate);
    this.up = CpuMatrix.of(up);
    this.down = CpuMatrix.of(down);
    projections.showInput(this.gate, gateInput, inputRow);
    projections.showInput(this.up, upInput, inputRow);
    gateOutput.set(gated, width, places);
    upOutput.set(raised, width, places);
    if (arrangesDown()) {
      downInput.set(arranged, arrangedStride, places);
    } else {
      downInput.set(gated, width, places);
    }
    downOutput.set(contributions, hiddenSize, contribution);
  }

  private boolean arrangesDown() {
    return compute.kernels().matmul().arrangement(down) != MatmulKernels.AS_IT_IS;
  }

  int width() {
    return width;
  }

  /**
   * Outputs of {@link #expand} that may be computed apart from others: what is arranged at once.
   */
  int expandUnit() {
    return down instanceof PackedMatrix packed ? packed.groupSize() : PackedMatrix.BLOCK_ROWS;
  }

  /** {@code silu(gate · n) · (up · n)} for a range of an expert's intermediate elements. */
  void expand(int expert, int first, int count, int from, int to, float[] tile) {
    MatmulKernels matmul = compute.kernels().matmul();
    matmul.multiply(gate, expert, from, to, gateInput, gateOutput, first, count, tile);
    matmul.multiply(up, expert, from, to, upInput, upOutput, first, count, tile);
    for (int place = first; place < first + count; place++) {
      int offset = place * width + from;
      compute.kernels().elementwise().swiglu(gated, raised, offset, to - from);
      if (arrangesDown()) {
        matmul.arrange(down, gated, place * width, from, to, arranged, place * arrangedStride);
      }
    }
  }

  /** {@code down · a} for a range of the hidden elements. */
  void contract(int expert, int first, int count, int from, int to, float[] tile) {
    compute
        .kernels()
        .matmul()
        .multiply(down, expert, from, to, downInput, downOutput, first, count, tile);
  }

  /** {@code [maxPlaces, hiddenSize]}. */
  float[] contributions() {
    return contributions;
  }
}
