package dev.lily.engine.backend.cpu;

import dev.lily.engine.backend.StateLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * The fp32 recurrent slots. For each delta layer a slot holds the states {@code [valueHeads,
 * keyDim, valueDim]}, then the convolution window {@code [convKernel - 1, convDim]}, oldest first.
 */
final class RecurrentSlots {
  private final MemorySegment segment;
  private final long headBytes;
  private final long stateBytes;
  private final long layerBytes;
  private final long slotBytes;
  private final int convDim;

  /**
   * @param segment {@code numSlots * slotBytes(layout)} bytes, aligned for floats
   */
  RecurrentSlots(MemorySegment segment, StateLayout layout) {
    this.segment = segment;
    convDim = layout.convDim();
    headBytes = (long) layout.keyDim() * layout.valueDim() * Float.BYTES;
    stateBytes = layout.numValueHeads() * headBytes;
    layerBytes = stateBytes + (long) (layout.convKernel() - 1) * convDim * Float.BYTES;
    slotBytes = slotBytes(layout);
  }

  static long slotBytes(StateLayout layout) {
    return layout.slotElements() * Float.BYTES;
  }

  MemorySegment segment() {
    return segment;
  }

  /** Byte offset of a value head's state. */
  long state(int slot, int layer, int valueHead) {
    return slot * slotBytes + layer * layerBytes + valueHead * headBytes;
  }

  /** Copies {@code count} channels of one input of the window. */
  void readWindow(
      int slot, int layer, int input, int channel, int count, float[] target, int offset) {
    MemorySegment.copy(
        segment,
        ValueLayout.JAVA_FLOAT,
        window(slot, layer, input, channel),
        target,
        offset,
        count);
  }

  /** Replaces {@code count} channels of one input of the window. */
  void writeWindow(
      int slot, int layer, int input, int channel, int count, float[] source, int offset) {
    MemorySegment.copy(
        source,
        offset,
        segment,
        ValueLayout.JAVA_FLOAT,
        window(slot, layer, input, channel),
        count);
  }

  private long window(int slot, int layer, int input, int channel) {
    return slot * slotBytes
        + layer * layerBytes
        + stateBytes
        + ((long) input * convDim + channel) * Float.BYTES;
  }

  void copy(int from, int to) {
    MemorySegment.copy(segment, from * slotBytes, segment, to * slotBytes, slotBytes);
  }

  void clear(int slot) {
    segment.asSlice(slot * slotBytes, slotBytes).fill((byte) 0);
  }
}
