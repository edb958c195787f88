package dev.lily.engine.backend.cpu.kernel;

import dev.lily.engine.backend.KeyValueType;
import dev.lily.engine.backend.StateLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/**
 * Keys and values rounded to bf16. In whole runs of {@value #RUN} elements of a row, elements
 * {@code i} and {@code i + 16} share a little-endian 32-bit word, so that a vector of words becomes
 * two vectors of fp32 by a shift and by a mask, each a run in plain order. What is left of a row of
 * values is in plain order.
 */
public final class Bf16Pages extends KeyValuePages {
  /** Elements that are ordered among themselves. */
  public static final int RUN = TOKEN_UNIT;

  /** Distance in elements of the two that share a word. */
  public static final int HALF = RUN / 2;

  /** Elements as they lie in memory. */
  public static final ValueLayout.OfShort ELEMENT =
      ValueLayout.JAVA_SHORT.withOrder(ByteOrder.LITTLE_ENDIAN);

  Bf16Pages(MemoryBlocks blocks, StateLayout layout) {
    super(blocks, layout);
  }

  @Override
  public KeyValueType type() {
    return KeyValueType.BF16;
  }

  /** The nearest bf16, the even one of two; NaN stays NaN. */
  static short round(float x) {
    int bits = Float.floatToRawIntBits(x);
    if (Float.isNaN(x)) {
      return (short) ((bits >>> 16) | 0x40);
    }
    return (short) ((bits + 0x7FFF + ((bits >>> 16) & 1)) >>> 16);
  }

  /** The value of a bf16. */
  public static float widen(short bits) {
    return Float.intBitsToFloat(bits << 16);
  }

  /** Place among the elements of a row, in elements, of one that lies in a whole run. */
  private static int place(int i) {
    int inRun = i % RUN;
    return i - inRun + 2 * (inRun % HALF) + inRun / HALF;
  }

  private int valuePlace(int d) {
    return d < headDim() / RUN * RUN ? place(d) : d;
  }

  @Override
  public long values(int layer, int head) {
    return keys(layer, head) + (long) headDim() * tokenStride() * Short.BYTES;
  }

  private long keyColumn(int layer, int head, int token) {
    return keys(layer, head) + (long) place(token) * Short.BYTES;
  }

  private long valueRow(int layer, int head, int token) {
    return values(layer, head) + (long) token * headDim() * Short.BYTES;
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
    long stride = (long) tokenStride() * Short.BYTES;
    long column = keyColumn(layer, head, token);
    long row = valueRow(layer, head, token);
    for (int d = 0; d < headDim(); d++, column += stride) {
      segment.set(ELEMENT, column, round(key[keyOffset + d]));
      segment.set(ELEMENT, row + (long) valuePlace(d) * Short.BYTES, round(value[valueOffset + d]));
    }
  }

  @Override
  public void key(int page, int layer, int head, int token, float[] key) {
    MemorySegment segment = segment(page);
    long stride = (long) tokenStride() * Short.BYTES;
    long at = keyColumn(layer, head, token);
    for (int d = 0; d < headDim(); d++, at += stride) {
      key[d] = widen(segment.get(ELEMENT, at));
    }
  }

  @Override
  public void value(int page, int layer, int head, int token, float[] value) {
    MemorySegment segment = segment(page);
    long row = valueRow(layer, head, token);
    for (int d = 0; d < headDim(); d++) {
      value[d] = widen(segment.get(ELEMENT, row + (long) valuePlace(d) * Short.BYTES));
    }
  }
}
