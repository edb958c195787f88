package dev.lily.engine.backend.cpu.kernel;

import dev.lily.engine.backend.KeyValueType;
import dev.lily.engine.backend.StateLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Keys and values as computed, in plain order. */
public final class Fp32Pages extends KeyValuePages {
  Fp32Pages(MemoryBlocks blocks, StateLayout layout) {
    super(blocks, layout);
  }

  @Override
  public KeyValueType type() {
    return KeyValueType.FP32;
  }

  @Override
  public long values(int layer, int head) {
    return keys(layer, head) + (long) headDim() * tokenStride() * Float.BYTES;
  }

  @Override
  public void put(
      int page,
      int layer,
      int head,
      int token,
      float[] key,
      int keyOffset,
      float[] value,
      int valueOffset) {
    MemorySegment segment = segment(page);
    long stride = (long) tokenStride() * Float.BYTES;
    long at = keys(layer, head) + (long) token * Float.BYTES;
    for (int d = 0; d < headDim(); d++, at += stride) {
      segment.set(ValueLayout.JAVA_FLOAT, at, key[keyOffset + d]);
    }
    MemorySegment.copy(
        value,
        valueOffset,
        segment,
        ValueLayout.JAVA_FLOAT,
        valueRow(layer, head, token),
        headDim());
  }

  private long valueRow(int layer, int head, int token) {
    return values(layer, head) + (long) token * headDim() * Float.BYTES;
  }

  @Override
  public void key(int page, int layer, int head, int token, float[] key) {
    MemorySegment segment = segment(page);
    long stride = (long) tokenStride() * Float.BYTES;
    long at = keys(layer, head) + (long) token * Float.BYTES;
    for (int d = 0; d < headDim(); d++, at += stride) {
      key[d] = segment.get(ValueLayout.JAVA_FLOAT, at);
    }
  }

  @Override
  public void value(int page, int layer, int head, int token, float[] value) {
    MemorySegment.copy(
        segment(page), ValueLayout.JAVA_FLOAT, valueRow(layer, head, token), value, 0, headDim());
  }
}
