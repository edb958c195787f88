package dev.lily.engine.backend.cpu;

import dev.lily.engine.backend.GatedDeltaOperands;
import dev.lily.engine.backend.Tensor;
import dev.lily.engine.backend.cpu.kernel.CpuTensor;

/**
 * A layer's convolution weights, reordered once so that the channels of one key head and its value
 * heads lie side by side: {@code [keyHeads][convKernel][unitChannels]}, query, key, then values.
 */
final class DeltaTaps {
  private final Tensor convWeight;
  private final float[][] units;

  DeltaTaps(GatedDeltaOperands operands) {
    convWeight = operands.convWeight();
    float[] source = CpuTensor.values(convWeight);
    int keyHeads = operands.numKeyHeads();
    int keyDim = operands.keyDim();
    int valueColumns = operands.numValueHeads() / keyHeads * operands.valueDim();
    int kernel = operands.convKernel();
    int channels = 2 * keyDim + valueColumns;
    units = new float[keyHeads][kernel * channels];
    for (int head = 0; head < keyHeads; head++) {
      for (int c = 0; c < channels; c++) {
        int channel = DeltaUnit.channel(c, head, keyHeads, keyDim, valueColumns);
        for (int t = 0; t < kernel; t++) {
          units[head][t * channels + c] = source[channel * kernel + t];
        }
      }
    }
  }

  /** Whether these are the weights that the operands name. */
  boolean isOf(GatedDeltaOperands operands) {
    return convWeight.equals(operands.convWeight());
  }

  /** {@code [convKernel, unitChannels]} of one key head. */
  float[] unit(int keyHead) {
    return units[keyHead];
  }
}
