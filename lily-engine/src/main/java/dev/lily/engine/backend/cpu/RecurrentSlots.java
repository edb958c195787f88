package dev.lily.engine.backend.cpu;

import dev.lily.engine.backend.StateLayout;
import dev.lily.engine.backend.cpu.kernel.MemoryBlocks;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * The fp32 recurrent slots. For each delta layer a slot holds the states {@code [valueHeads,
 * keyDim, valueDim]}, then the convolution window {@code [convKernel - 1, convDim]}, oldest first.
 */
final class RecurrentSlots {
  private final MemoryBlocks blocks;
  private final long headBytes;
  private final long stateBytes;
  private final long layerBytes;
  private final int convDim;

  /**
   * @param blocks {@code numSlots} of {@code slotBytes(layout)} bytes
   */
  RecurrentSlots(MemoryBlocks blocks, StateLayout layout) {
    this.blocks = blocks;
    convDim = layout.convDim();
    headBytes = (long) layout.keyDim() * layout.valueDim() * Float.BYTES;
    stateBytes = layout.numValueHeads() * headBytes;
    layerBytes = stateBytes + (long) (layout.convKernel() - 1) * convDim * Float.BYTES;
  }

  static long slotBytes(StateLayout layout) {
    return layout.slotElements() * Float.BYTES;
  }

  /** The memory of a slot; there is none before it was cleared or copied to. */
  MemorySegment segment(int slot) {
    return blocks.get(slot);
  }

  /** Makes sure that a slot has memory, before parts of it are written. Engine thread only. */
  void prepare(int slot) {
    blocks.take(slot);
  }

  /** Bytes of all slots. */
  long bytes() {
    return blocks.bytes();
  }

  /** Bytes that slots have taken so far. */
  long bytesTaken() {
    return blocks.bytesTaken();
  }

  /** Byte offset in a slot of a value head's state. */
  long state(int layer, int valueHead) {
    return layer * layerBytes + valueHead * headBytes;
  }

  /** Copies {@code count} channels of one input of the window. */
  void readWindow(
      int slot, int layer, int input, int channel, int count, float[] target, int offset) {
    MemorySegment.copy(
        blocks.get(slot),
        ValueLayout.JAVA_FLOAT,
        window(layer, input, channel),
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
        blocks.get(slot),
        ValueLayout.JAVA_FLOAT,
        window(layer, input, channel),
        count);
  }

  private long window(int layer, int input, int channel) {
    return layer * layerBytes + stateBytes + ((long) input * convDim + channel) * Float.BYTES;
  }

  void copy(int from, int to) {
    blocks.copy(from, to);
  }

  void clear(int slot) {
    blocks.take(slot).fill((byte) 0);
  }
}
