package dev.lily.engine.backend.cpu.scalar;

import dev.lily.engine.backend.cpu.kernel.DeltaHead;
import dev.lily.engine.backend.cpu.kernel.DeltaRuleKernels;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** The recurrence as its equations are written. */
final class ScalarDeltaRule implements DeltaRuleKernels {
  @Override
  public void convolve(
      float[] inputs, int row, float[] taps, int kernel, int channels, float[] out, int outOffset) {
    for (int c = 0; c < channels; c++) {
      float sum = 0;
      for (int t = 0; t < kernel; t++) {
        sum = Math.fma(taps[t * channels + c], inputs[(row + t) * channels + c], sum);
      }
      out[outOffset + c] = ScalarKernels.silu(sum);
    }
  }

  @Override
  public int stateColumns() {
    return 16;
  }

  @Override
  public void advance(MemorySegment state, long offset, DeltaHead head, int from, int to) {
    float[] vectors = head.vectors();
    int keyDim = head.keyDim();
    long stride = (long) head.valueDim() * Float.BYTES;
    for (int j = from; j < to; j++) {
      long at = offset + (long) j * Float.BYTES;
      float read = 0;
      for (int i = 0; i < keyDim; i++) {
        float decayed = head.decay() * state.get(ValueLayout.JAVA_FLOAT, at + i * stride);
        state.set(ValueLayout.JAVA_FLOAT, at + i * stride, decayed);
        read = Math.fma(vectors[head.key() + i], decayed, read);
      }
      float delta = head.beta() * (vectors[head.value() + j] - read);
      float out = 0;
      for (int i = 0; i < keyDim; i++) {
        float updated =
            Math.fma(
                vectors[head.key() + i], delta, state.get(ValueLayout.JAVA_FLOAT, at + i * stride));
        state.set(ValueLayout.JAVA_FLOAT, at + i * stride, updated);
        out = Math.fma(vectors[head.query() + i], updated, out);
      }
      head.output()[head.out() + j] = out;
    }
  }
}
