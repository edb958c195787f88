package dev.lily.engine.backend.cpu;

import dev.lily.engine.backend.GatedDeltaOperands;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.StateLayout;
import dev.lily.engine.backend.cpu.kernel.CpuKernels;
import dev.lily.engine.backend.cpu.kernel.CpuTensor;
import dev.lily.engine.backend.cpu.kernel.DeltaHead;
import java.lang.foreign.MemorySegment;

/**
 * One key head and its value heads of one sequence, all rows in order. Holds the scratch of one
 * thread. Rows are taken in blocks, so that a slice of the state stays in cache for a whole block.
 */
final class DeltaUnit {
  private static final int BLOCK_ROWS = 16;
  private static final int PARTS = 3;
  private static final float L2_EPS = 1e-6f;

  private final CpuKernels kernels;
  private final RecurrentSlots slots;
  private final float[] inputs;
  private final float[] vectors;
  private final float[] outputs;
  private final float[] decay = new float[BLOCK_ROWS];
  private final float[] beta = new float[BLOCK_ROWS];
  private final DeltaHead step = new DeltaHead();
  private int keyDim;
  private int valueDim;
  private int keyHeads;
  private int heads;
  private int channels;

  DeltaUnit(CpuKernels kernels, RecurrentSlots slots, StateLayout layout) {
    this.kernels = kernels;
    this.slots = slots;
    int channels = maxChannels(layout);
    inputs = Compute.scratch((long) (layout.convKernel() - 1 + BLOCK_ROWS) * channels);
    vectors = Compute.scratch((long) BLOCK_ROWS * channels);
    outputs = Compute.scratch((long) BLOCK_ROWS * layout.numValueHeads() * layout.valueDim());
  }

  /** fp32 elements of a thread's scratch. */
  static long elements(StateLayout layout) {
    return (layout.convKernel() - 1 + 2L * BLOCK_ROWS) * maxChannels(layout)
        + (long) BLOCK_ROWS * layout.numValueHeads() * layout.valueDim();
  }

  private static int maxChannels(StateLayout layout) {
    return 2 * layout.keyDim() + layout.numValueHeads() * layout.valueDim();
  }

  /** Channel of the convolution that a unit's {@code c}-th channel is. */
  static int channel(int c, int keyHead, int keyHeads, int keyDim, int valueColumns) {
    if (c < keyDim) {
      return keyHead * keyDim + c;
    }
    if (c < 2 * keyDim) {
      return (keyHeads + keyHead) * keyDim + c - keyDim;
    }
    return 2 * keyHeads * keyDim + keyHead * valueColumns + c - 2 * keyDim;
  }

  /**
   * Computes the unit's part of {@code y} and advances its part of the slot.
   *
   * @param taps {@code [convKernel, channels]} of the unit
   */
  void run(GatedDeltaOperands operands, RowPlan plan, int sequence, int keyHead, float[] taps) {
    keyDim = operands.keyDim();
    valueDim = operands.valueDim();
    keyHeads = operands.numKeyHeads();
    heads = operands.numValueHeads() / keyHeads;
    channels = 2 * keyDim + heads * valueDim;
    step.arrays(vectors, outputs, keyDim, valueDim);
    int slot = plan.recurrentSlot(sequence);
    int tail = operands.convKernel() - 1;
    for (int input = 0; input < tail; input++) {
      readWindow(operands.layer(), slot, keyHead, input);
    }
    int end = plan.firstRow(sequence) + plan.numRows(sequence);
    for (int first = plan.firstRow(sequence); first < end; first += BLOCK_ROWS) {
      int rows = Math.min(BLOCK_ROWS, end - first);
      for (int r = 0; r < rows; r++) {
        readRow(operands, first + r, keyHead, tail + r);
        prepare(r, taps, operands.convKernel());
      }
      for (int h = 0; h < heads; h++) {
        int valueHead = keyHead * heads + h;
        gates(operands, valueHead, first, rows);
        recur(slots.segment(slot), slots.state(operands.layer(), valueHead), h, rows);
        normalize(operands, valueHead, h, first, rows);
      }
      System.arraycopy(inputs, rows * channels, inputs, 0, tail * channels);
    }
    for (int input = 0; input < tail; input++) {
      writeWindow(operands.layer(), slot, keyHead, input);
    }
  }

  /** Columns of the {@code p}-th part of a unit's channels: query, key, values. */
  private int count(int p) {
    return p < 2 ? keyDim : heads * valueDim;
  }

  private int channel(int p, int keyHead) {
    return channel(p * keyDim, keyHead, keyHeads, keyDim, heads * valueDim);
  }

  private void readWindow(int layer, int slot, int keyHead, int input) {
    for (int p = 0; p < PARTS; p++) {
      int at = input * channels + p * keyDim;
      slots.readWindow(slot, layer, input, channel(p, keyHead), count(p), inputs, at);
    }
  }

  private void writeWindow(int layer, int slot, int keyHead, int input) {
    for (int p = 0; p < PARTS; p++) {
      int at = input * channels + p * keyDim;
      slots.writeWindow(slot, layer, input, channel(p, keyHead), count(p), inputs, at);
    }
  }

  private void readRow(GatedDeltaOperands operands, int row, int keyHead, int input) {
    float[] qkv = CpuTensor.values(operands.qkv());
    int source = row * operands.qkv().columns();
    for (int p = 0; p < PARTS; p++) {
      int at = input * channels + p * keyDim;
      System.arraycopy(qkv, source + channel(p, keyHead), inputs, at, count(p));
    }
  }

  /** Convolution and norms of a row of the block. */
  private void prepare(int r, float[] taps, int kernel) {
    int at = r * channels;
    kernels.deltaRule().convolve(inputs, r, taps, kernel, channels, vectors, at);
    kernels.norm().l2Norm(vectors, at, keyDim, L2_EPS, (float) (1 / Math.sqrt(keyDim)));
    kernels.norm().l2Norm(vectors, at + keyDim, keyDim, L2_EPS, 1);
  }

  private void gates(GatedDeltaOperands operands, int valueHead, int first, int rows) {
    float[] a = CpuTensor.values(operands.a());
    float[] b = CpuTensor.values(operands.b());
    double rate = Math.exp(CpuTensor.values(operands.aLog())[valueHead]);
    float bias = CpuTensor.values(operands.dtBias())[valueHead];
    for (int r = 0; r < rows; r++) {
      int at = (first + r) * operands.numValueHeads() + valueHead;
      decay[r] = (float) Math.exp(-rate * softplus(a[at] + bias));
      beta[r] = (float) (1 / (1 + Math.exp(-b[at])));
    }
  }

  private static double softplus(float x) {
    return x > 20 ? x : Math.log1p(Math.exp(x));
  }

  private void recur(MemorySegment slot, long state, int h, int rows) {
    int columns = kernels.deltaRule().stateColumns();
    for (int j = 0; j < valueDim; j += columns) {
      int to = Math.min(valueDim, j + columns);
      for (int r = 0; r < rows; r++) {
        int query = r * channels;
        int value = query + 2 * keyDim + h * valueDim;
        step.step(query, query + keyDim, value, output(r, h), decay[r], beta[r]);
        kernels.deltaRule().advance(slot, state, step, j, to);
      }
    }
  }

  private void normalize(GatedDeltaOperands operands, int valueHead, int h, int first, int rows) {
    float[] gain = CpuTensor.values(operands.gain());
    float[] z = CpuTensor.values(operands.z());
    float[] y = CpuTensor.values(operands.y());
    for (int r = 0; r < rows; r++) {
      int at = ((first + r) * operands.numValueHeads() + valueHead) * valueDim;
      kernels.norm().gatedNorm(outputs, output(r, h), valueDim, gain, operands.eps(), z, at, y, at);
    }
  }

  private int output(int r, int h) {
    return (r * heads + h) * valueDim;
  }
}
