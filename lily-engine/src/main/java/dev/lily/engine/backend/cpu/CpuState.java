package dev.lily.engine.backend.cpu;

import dev.lily.engine.backend.DeviceState;
import dev.lily.engine.backend.ModelShape;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.StateLayout;
import dev.lily.engine.backend.cpu.kernel.KeyValuePages;
import dev.lily.engine.backend.cpu.kernel.MemoryBlocks;
import dev.lily.engine.sampling.SamplerState;
import dev.lily.engine.sampling.SamplingParameters;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * Sequence state in native memory, which each page and slot takes when it is first written, and the
 * pass with its scratch.
 */
final class CpuState implements DeviceState {
  private final StateLayout layout;
  private final Arena arena = Arena.ofShared();
  private final KeyValuePages pages;
  private final RecurrentSlots slots;
  private final SamplerState[] samplers;
  private final CpuPass pass;
  private boolean closed;

  /**
   * @param isPoisoned whether pages and slots start as NaN, so that reading what was not written
   *     shows
   */
  CpuState(
      Compute compute,
      StateLayout layout,
      ModelShape shape,
      PassLimits limits,
      boolean isPoisoned) {
    this.layout = layout;
    try {
      long pageBytes = KeyValuePages.pageBytes(layout);
      long slotBytes = RecurrentSlots.slotBytes(layout);
      pages =
          KeyValuePages.of(
              new MemoryBlocks(arena, layout.numPages(), pageBytes, isPoisoned), layout);
      slots =
          new RecurrentSlots(
              new MemoryBlocks(arena, layout.numSlots(), slotBytes, isPoisoned), layout);
      samplers = new SamplerState[layout.numSamplingSlots()];
      for (int i = 0; i < samplers.length; i++) {
        samplers[i] = new SamplerState(layout.vocabularySize());
      }
      pass = new CpuPass(compute, this, shape, limits);
    } catch (Throwable t) {
      arena.close();
      throw t;
    }
  }

  private static long pagesBytes(StateLayout layout) {
    return layout.numPages() * KeyValuePages.pageBytes(layout);
  }

  private static long slotsBytes(StateLayout layout) {
    return layout.numSlots() * RecurrentSlots.slotBytes(layout);
  }

  private static long samplersBytes(StateLayout layout) {
    long sampler = 2L * Integer.BYTES * layout.vocabularySize() + layout.vocabularySize() / 4;
    return layout.numSamplingSlots() * sampler;
  }

  /** Bytes of a state, samplers included. */
  static long bytes(StateLayout layout) {
    return pagesBytes(layout) + slotsBytes(layout) + samplersBytes(layout);
  }

  KeyValuePages pages() {
    return pages;
  }

  RecurrentSlots slots() {
    return slots;
  }

  SamplerState[] samplers() {
    return samplers;
  }

  /** The one pass object, made ready for a plan. */
  CpuPass begin(RowPlan plan) {
    pass.begin(plan);
    return pass;
  }

  @Override
  public StateLayout layout() {
    return layout;
  }

  @Override
  public long bytes() {
    return pages.bytes() + slots.bytes() + samplersBytes(layout);
  }

  @Override
  public long allocatedBytes() {
    return pages.bytesTaken() + slots.bytesTaken() + samplersBytes(layout);
  }

  @Override
  public void copySlot(int from, int to) {
    slots.copy(from, to);
  }

  @Override
  public void clearSlot(int slot) {
    slots.clear(slot);
  }

  @Override
  public void copyPage(int from, int to) {
    pages.copy(from, to);
  }

  @Override
  public void beginSampling(int slot, SamplingParameters parameters, int[] promptTokens) {
    samplers[slot].begin(parameters, promptTokens);
  }

  @Override
  public void maskTokens(int slot, long @Nullable [] allowed) {
    samplers[slot].mask(allowed);
  }

  /** The 1 is that of the order of elements in pages and slots. */
  @Override
  public String format() {
    return CpuBackendProvider.ID + " 1 " + layout.format();
  }

  @Override
  public long pageBytes() {
    return KeyValuePages.pageBytes(layout);
  }

  @Override
  public long slotBytes() {
    return RecurrentSlots.slotBytes(layout);
  }

  @Override
  public void readPage(int page, MemorySegment target) {
    MemorySegment.copy(pages.segment(page), 0, target, 0, pageBytes());
  }

  @Override
  public void writePage(int page, MemorySegment source) {
    pages.prepare(page);
    MemorySegment.copy(source, 0, pages.segment(page), 0, pageBytes());
  }

  @Override
  public void readSlot(int slot, long offset, MemorySegment target) {
    MemorySegment.copy(slots.segment(slot), offset, target, 0, target.byteSize());
  }

  @Override
  public void writeSlot(int slot, long offset, MemorySegment source) {
    slots.prepare(slot);
    MemorySegment.copy(source, 0, slots.segment(slot), offset, source.byteSize());
  }

  @Override
  public void rewindSampling(int slot, int[] chosen, int count, int kept) {
    samplers[slot].rewind(chosen, count, kept);
  }

  /** Closing again does nothing. */
  @Override
  public void close() {
    if (!closed) {
      closed = true;
      arena.close();
    }
  }
}
