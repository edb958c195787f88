package dev.lily.engine.backend.cpu.vector;

import static dev.lily.engine.backend.cpu.vector.Lanes.FLOATS;
import static dev.lily.engine.backend.cpu.vector.Lanes.LANES;

import dev.lily.engine.backend.cpu.kernel.ElementwiseKernels;
import jdk.incubator.vector.FloatVector;

/** Element by element, lanes side by side. */
final class VectorElementwise implements ElementwiseKernels {
  @Override
  public void swiglu(float[] gate, float[] up, int offset, int count) {
    VectorMath.silu(gate, offset, gate, offset, count);
    int i = offset;
    for (; i <= offset + count - LANES; i += LANES) {
      FloatVector.fromArray(FLOATS, gate, i)
          .mul(FloatVector.fromArray(FLOATS, up, i))
          .intoArray(gate, i);
    }
    for (; i < offset + count; i++) {
      gate[i] *= up[i];
    }
  }

  @Override
  public void scale(
      float[] source, int sourceOffset, float weight, float[] target, int targetOffset, int count) {
    int i = 0;
    for (; i <= count - LANES; i += LANES) {
      FloatVector.fromArray(FLOATS, source, sourceOffset + i)
          .mul(weight)
          .intoArray(target, targetOffset + i);
    }
    for (; i < count; i++) {
      target[targetOffset + i] = weight * source[sourceOffset + i];
    }
  }

  @Override
  public void addScaled(
      float[] source, int sourceOffset, float weight, float[] target, int targetOffset, int count) {
    FloatVector factor = FloatVector.broadcast(FLOATS, weight);
    int i = 0;
    for (; i <= count - LANES; i += LANES) {
      FloatVector.fromArray(FLOATS, source, sourceOffset + i)
          .fma(factor, FloatVector.fromArray(FLOATS, target, targetOffset + i))
          .intoArray(target, targetOffset + i);
    }
    for (; i < count; i++) {
      target[targetOffset + i] =
          Math.fma(weight, source[sourceOffset + i], target[targetOffset + i]);
    }
  }
}
