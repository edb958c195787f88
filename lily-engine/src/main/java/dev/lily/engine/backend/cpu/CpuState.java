package dev.lily.engine.backend.cpu;

import dev.lily.engine.backend.DeviceState;
import dev.lily.engine.backend.ModelShape;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.StateLayout;
import dev.lily.engine.backend.cpu.kernel.KeyValuePages;
import dev.lily.engine.sampling.SamplerState;
import dev.lily.engine.sampling.SamplingParameters;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.jspecify.annotations.Nullable;

/**
 * Sequence state in native memory, and the pass with its scratch. Pages and slots start as NaN, so
 * that reading what was not written shows.
 */
final class CpuState implements DeviceState {
  private static final long ALIGNMENT = 64;

  private final StateLayout layout;
  private final Arena arena = Arena.ofShared();
  private final KeyValuePages pages;
  private final RecurrentSlots slots;
  private final SamplerState[] samplers;
  private final CpuPass pass;
  private boolean closed;

  CpuState(Compute compute, StateLayout layout, ModelShape shape, PassLimits limits) {
    this.layout = layout;
    try {
      pages = new KeyValuePages(allocate(pagesBytes(layout)), layout);
      slots = new RecurrentSlots(allocate(slotsBytes(layout)), layout);
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

  private MemorySegment allocate(long bytes) {
    MemorySegment segment = arena.allocate(bytes, ALIGNMENT);
    for (long at = 0; at < bytes; at += Float.BYTES) {
      segment.set(ValueLayout.JAVA_FLOAT, at, Float.NaN);
    }
    return segment;
  }

  private static long pagesBytes(StateLayout layout) {
    return layout.numPages() * KeyValuePages.pageBytes(layout);
  }

  private static long slotsBytes(StateLayout layout) {
    return layout.numSlots() * RecurrentSlots.slotBytes(layout);
  }

  /** Bytes of a state, samplers included. */
  static long bytes(StateLayout layout) {
    long sampler = 2L * Integer.BYTES * layout.vocabularySize() + layout.vocabularySize() / 4;
    return pagesBytes(layout) + slotsBytes(layout) + layout.numSamplingSlots() * sampler;
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
    return bytes(layout);
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

  /** Closing again does nothing. */
  @Override
  public void close() {
    if (!closed) {
      closed = true;
      arena.close();
    }
  }
}
