package dev.lily.metal;

import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.DeviceState;
import dev.lily.engine.backend.ModelShape;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.PendingPass;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.StateLayout;
import dev.lily.engine.sampling.SamplingParameters;
import dev.lily.metal.device.CommandQueue;
import dev.lily.metal.kernel.AttentionKernels;
import dev.lily.metal.kernel.DeltaRuleKernels;
import dev.lily.metal.kernel.DeviceMemory;
import dev.lily.metal.kernel.DevicePlan;
import dev.lily.metal.kernel.ExpertsKernels;
import dev.lily.metal.kernel.MetalKernels;
import dev.lily.metal.kernel.Recording;
import dev.lily.metal.kernel.Region;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * Sequence state in device memory, the scratch of passes, and the passes themselves. Copies between
 * slots and pages are recorded at the start of the next pass, which puts them after all passes
 * submitted before; what the host writes waits for the passes in flight.
 */
final class MetalState implements DeviceState {
  private final StateLayout layout;
  private final DeviceMemory memory;
  private final MetalKernels kernels;
  private final WorkBudget budget;
  private final AttentionKernels.State attention;
  private final DeltaRuleKernels.State deltaRule;
  private final ExpertsKernels.Scratch experts;
  private final Region[] regions;
  private final SamplingSlots sampling;
  private final PendingCopies copies = new PendingCopies();
  private final MetalPendingPass[] passes;
  private final MetalPass pass;

  MetalState(
      DeviceMemory memory,
      CommandQueue queue,
      MetalKernels kernels,
      WorkBudget budget,
      StateLayout layout,
      ModelShape shape,
      PassLimits limits) {
    this.budget = budget;
    this.layout = layout;
    this.memory = memory;
    this.kernels = kernels;
    long rows = limits.maxRows();
    int kvHeads = layout.numKeyValueHeads();
    regions =
        new Region[] {
          region(pagesBytes(layout)),
          region(
              AttentionKernels.partialBytes(
                  limits.maxSequences(), shape.numAttentionHeads(), kvHeads, layout.headDim())),
          region(
              AttentionKernels.statsBytes(
                  limits.maxSequences(), shape.numAttentionHeads(), kvHeads)),
          region(layout.numSlots() * DeltaRuleKernels.windowSlotBytes(layout)),
          region(layout.numSlots() * DeltaRuleKernels.stateSlotBytes(layout)),
          region(rows * layout.convDim() * Float.BYTES),
          region(rows * layout.numValueHeads() * 2 * Float.BYTES),
          region(rows * layout.numValueHeads() * layout.valueDim() * Float.BYTES)
        };
    attention = new AttentionKernels.State(layout, regions[0], regions[1], regions[2]);
    deltaRule =
        new DeltaRuleKernels.State(
            layout, regions[3], regions[4], regions[5], regions[6], regions[7]);
    experts = new ExpertsKernels.Scratch(memory, shape, limits.maxRows());
    sampling = new SamplingSlots(memory, layout, limits.maxSequences());
    passes =
        new MetalPendingPass[] {
          new MetalPendingPass(memory, queue, budget, layout, limits),
          new MetalPendingPass(memory, queue, budget, layout, limits)
        };
    pass = new MetalPass(this, kernels, limits);
    memory.commit();
  }

  /**
   * The implementation of a state.
   *
   * @throws BackendException if it is another back end's
   */
  static MetalState of(DeviceState state) {
    if (state instanceof MetalState metal) {
      return metal;
    }
    throw new BackendException(
        "The Metal back end was given a " + state.getClass().getName() + "; it takes its own only");
  }

  private Region region(long bytes) {
    return new Region(memory.allocate(bytes));
  }

  private static long pagesBytes(StateLayout layout) {
    return layout.numPages() * AttentionKernels.pageBytes(layout);
  }

  /** Bytes of a state. */
  static long bytes(StateLayout layout) {
    return pagesBytes(layout)
        + layout.numSlots()
            * (DeltaRuleKernels.windowSlotBytes(layout) + DeltaRuleKernels.stateSlotBytes(layout))
        + SamplingSlots.bytes(layout);
  }

  /** Bytes of the scratch. */
  static long workspaceBytes(StateLayout layout, ModelShape shape, PassLimits limits) {
    int heads = shape.numAttentionHeads();
    int kvHeads = layout.numKeyValueHeads();
    int sequences = limits.maxSequences();
    long recordings = 2L * (1 + sequences); // of either pass: its own, and a step of each size
    return AttentionKernels.partialBytes(sequences, heads, kvHeads, layout.headDim())
        + AttentionKernels.statsBytes(sequences, heads, kvHeads)
        + limits.maxRows() * deltaRowBytes(layout)
        + ExpertsKernels.Scratch.bytes(shape, limits.maxRows())
        + SamplingSlots.scratchBytes(layout.vocabularySize(), sequences)
        + 2 * (DevicePlan.bytes(layout, limits) + MetalPendingPass.resultBytes(limits))
        + recordings * Recording.bytes();
  }

  private static long deltaRowBytes(StateLayout layout) {
    return Float.BYTES * (layout.convDim() + layout.numValueHeads() * (2L + layout.valueDim()));
  }

  AttentionKernels.State attention() {
    return attention;
  }

  DeltaRuleKernels.State deltaRule() {
    return deltaRule;
  }

  ExpertsKernels.Scratch experts() {
    return experts;
  }

  SamplingSlots sampling() {
    return sampling;
  }

  MetalPass begin(RowPlan plan) {
    pass.begin(plan);
    return pass;
  }

  @Nullable PendingPass replay(RowPlan plan) {
    return pass.replay(plan);
  }

  WorkBudget budget() {
    return budget;
  }

  /** The pass in flight of a number. */
  MetalPendingPass pending(int number) {
    return passes[number & 1];
  }

  /** Whether copies were asked for since the last submit. */
  boolean hasCopies() {
    return !copies.isEmpty();
  }

  /** Records the copies that were asked for since the last submit. */
  void recordCopies() {
    memory.commit();
    copies.record(this, kernels);
  }

  /** The pass with the copies was submitted. */
  void copiesSubmitted() {
    copies.submitted();
  }

  long slotBytes(Region region) {
    return region == deltaRule.states()
        ? DeltaRuleKernels.stateSlotBytes(layout)
        : DeltaRuleKernels.windowSlotBytes(layout);
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
    requireIndex("recurrent slot", from, layout.numSlots());
    requireIndex("recurrent slot", to, layout.numSlots());
    copies.add(PendingCopies.SLOT, from, to);
  }

  @Override
  public void clearSlot(int slot) {
    requireIndex("recurrent slot", slot, layout.numSlots());
    copies.add(PendingCopies.CLEAR, slot, slot);
  }

  @Override
  public void copyPage(int from, int to) {
    requireIndex("page", from, layout.numPages());
    requireIndex("page", to, layout.numPages());
    copies.add(PendingCopies.PAGE, from, to);
  }

  @Override
  public void beginSampling(int slot, SamplingParameters parameters, int[] promptTokens) {
    requireIndex("sampling slot", slot, layout.numSamplingSlots());
    drain();
    sampling.begin(slot, parameters, promptTokens);
  }

  @Override
  public void maskTokens(int slot, long @Nullable [] allowed) {
    requireIndex("sampling slot", slot, layout.numSamplingSlots());
    drain();
    sampling.mask(slot, allowed);
  }

  /** The 1 is that of the order of elements in pages and slots. */
  @Override
  public String format() {
    return MetalBackendProvider.ID + " 1 " + layout.format();
  }

  @Override
  public long pageBytes() {
    return AttentionKernels.pageBytes(layout);
  }

  @Override
  public long slotBytes() {
    return slotBytes(deltaRule.states()) + slotBytes(deltaRule.windows());
  }

  @Override
  public void readPage(int page, MemorySegment target) {
    MemorySegment.copy(page(page), 0, target, 0, pageBytes());
  }

  @Override
  public void writePage(int page, MemorySegment source) {
    MemorySegment.copy(source, 0, page(page), 0, pageBytes());
  }

  private MemorySegment page(int page) {
    requireIndex("page", page, layout.numPages());
    makeCopiesOf(PendingCopies.PAGE, page);
    return attention.pages().buffer().contents().asSlice(page * pageBytes(), pageBytes());
  }

  @Override
  public void readSlot(int slot, long offset, MemorySegment target) {
    requireIndex("recurrent slot", slot, layout.numSlots());
    makeCopiesOf(PendingCopies.SLOT, slot);
    for (long at = 0; at < target.byteSize(); ) {
      MemorySegment part = slot(slot, offset + at);
      long bytes = Math.min(part.byteSize(), target.byteSize() - at);
      MemorySegment.copy(part, 0, target, at, bytes);
      at += bytes;
    }
  }

  @Override
  public void writeSlot(int slot, long offset, MemorySegment source) {
    requireIndex("recurrent slot", slot, layout.numSlots());
    makeCopiesOf(PendingCopies.SLOT, slot);
    for (long at = 0; at < source.byteSize(); ) {
      MemorySegment part = slot(slot, offset + at);
      long bytes = Math.min(part.byteSize(), source.byteSize() - at);
      MemorySegment.copy(source, at, part, 0, bytes);
      at += bytes;
    }
  }

  /**
   * A slot's bytes from an offset on, as far as they lie together: its states, then its windows.
   */
  private MemorySegment slot(int slot, long offset) {
    long states = slotBytes(deltaRule.states());
    Region region = offset < states ? deltaRule.states() : deltaRule.windows();
    long bytes = slotBytes(region);
    long within = offset < states ? offset : offset - states;
    return region.buffer().contents().asSlice(slot * bytes + within, bytes - within);
  }

  /** Makes the copies now if one asked for since the last submit is to or from a page or slot. */
  private void makeCopiesOf(int kind, int index) {
    for (MetalPendingPass pending : passes) {
      if (pending.isRecording()) {
        pending.commands().await(); // a pass that failed half-way may still be writing
      }
    }
    if (copies.concern(kind, index)) {
      drain();
      copies.make(this);
    }
  }

  @Override
  public void rewindSampling(int slot, int[] chosen, int count, int kept) {
    requireIndex("sampling slot", slot, layout.numSamplingSlots());
    drain();
    sampling.rewind(slot, chosen, count, kept);
  }

  private static void requireIndex(String what, int index, int count) {
    if (index < 0 || index >= count) {
      throw new BackendException("There is no %s %d; there are %d".formatted(what, index, count));
    }
  }

  private void drain() {
    for (MetalPendingPass pending : passes) {
      pending.complete();
    }
  }

  @Override
  public void close() {
    for (MetalPendingPass pending : passes) {
      pending.close();
    }
    for (Region region : regions) {
      memory.release(region.buffer());
    }
    experts.release(memory);
    sampling.release();
  }
}
