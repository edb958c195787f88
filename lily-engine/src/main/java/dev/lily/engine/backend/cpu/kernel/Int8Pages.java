package dev.lily.engine.backend.cpu.kernel;

import dev.lily.engine.backend.KeyValueType;
import dev.lily.engine.backend.StateLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Keys and values as signed bytes in plain order, {@code x = scale · byte}. For each layer and KV
 * head the keys are followed by one fp32 scale per token, {@code [tokenStride]}, then by those of
 * the values, then by the values. A key or value that is not finite has a scale that is not, so
 * that it shows.
 */
public final class Int8Pages extends KeyValuePages {
  private static final int MAX = 127;

  Int8Pages(MemoryBlocks blocks, StateLayout layout) {
    super(blocks, layout);
  }

  @Override
  public KeyValueType type() {
    return KeyValueType.INT8;
  }

  /** Byte offset in a page of the scales of the keys of one layer and KV head. */
  public long keyScales(int layer, int head) {
    return keys(layer, head) + (long) headDim() * tokenStride();
  }

  /** Byte offset in a page of the scales of the values of one layer and KV head. */
  public long valueScales(int layer, int head) {
    return keyScales(layer, head) + (long) tokenStride() * Float.BYTES;
  }

  @Override
  public long values(int layer, int head) {
    return valueScales(layer, head) + (long) tokenStride() * Float.BYTES;
  }

  private long valueRow(int layer, int head, int token) {
    return values(layer, head) + (long) token * headDim();
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
    long scale = (long) token * Float.BYTES;
    putRow(
        segment,
        key,
        keyOffset,
        keyScales(layer, head) + scale,
        keys(layer, head) + token,
        tokenStride());
    putRow(
        segment,
        value,
        valueOffset,
        valueScales(layer, head) + scale,
        valueRow(layer, head, token),
        1);
  }

  private void putRow(
      MemorySegment segment, float[] x, int offset, long scaleAt, long at, long stride) {
    float max = 0;
    for (int d = 0; d < headDim(); d++) {
      max = Math.max(max, Math.abs(x[offset + d]));
    }
    float scale = max / MAX;
    segment.set(ValueLayout.JAVA_FLOAT, scaleAt, scale);
    for (int d = 0; d < headDim(); d++) {
      segment.set(ValueLayout.JAVA_BYTE, at + d * stride, quantize(x[offset + d], scale));
    }
  }

  /** The nearest step of a scale. */
  private static byte quantize(float x, float scale) {
    return scale == 0 ? 0 : (byte) Math.clamp(Math.round(x / scale), -MAX, MAX);
  }

  @Override
  public void key(int page, int layer, int head, int token, float[] key) {
    getRow(
        segment(page),
        keyScales(layer, head) + (long) token * Float.BYTES,
        keys(layer, head) + token,
        tokenStride(),
        key);
  }

  @Override
  public void value(int page, int layer, int head, int token, float[] value) {
    getRow(
        segment(page),
        valueScales(layer, head) + (long) token * Float.BYTES,
        valueRow(layer, head, token),
        1,
        value);
  }

  private void getRow(MemorySegment segment, long scaleAt, long at, long stride, float[] x) {
    float scale = segment.get(ValueLayout.JAVA_FLOAT, scaleAt);
    for (int d = 0; d < headDim(); d++) {
      x[d] = scale * segment.get(ValueLayout.JAVA_BYTE, at + d * stride);
    }
  }
}
