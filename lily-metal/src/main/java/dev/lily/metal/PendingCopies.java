package dev.lily.metal;

import dev.lily.metal.kernel.AttentionKernels;
import dev.lily.metal.kernel.MetalKernels;
import dev.lily.metal.kernel.Region;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/** Copies of slots and pages that the next pass begins with, in the order they were asked for. */
final class PendingCopies {
  static final int SLOT = 0;
  static final int PAGE = 1;
  static final int CLEAR = 2;

  private static final int WORDS = 3;

  private int[] entries = new int[16 * WORDS];
  private int size;
  private int recorded;

  void add(int kind, int from, int to) {
    if (size + WORDS > entries.length) {
      entries = Arrays.copyOf(entries, 2 * entries.length);
    }
    entries[size++] = kind;
    entries[size++] = from;
    entries[size++] = to;
  }

  boolean isEmpty() {
    return size == 0;
  }

  /** Records all; a pass that is dropped leaves them to the next one. */
  void record(MetalState state, MetalKernels kernels) {
    for (int i = 0; i < size; i += WORDS) {
      int from = entries[i + 1];
      int to = entries[i + 2];
      switch (entries[i]) {
        case SLOT -> {
          copy(kernels, state.deltaRule().states(), state, from, to);
          copy(kernels, state.deltaRule().windows(), state, from, to);
        }
        case CLEAR -> {
          clear(kernels, state.deltaRule().states(), state, to);
          clear(kernels, state.deltaRule().windows(), state, to);
        }
        default -> {
          long bytes = AttentionKernels.pageBytes(state.layout());
          Region pages = state.attention().pages();
          if (from != to) {
            kernels.elementwise().copy(pages, from * bytes, pages, to * bytes, bytes);
          }
        }
      }
    }
    recorded = size;
  }

  private static void copy(
      MetalKernels kernels, Region region, MetalState state, int from, int to) {
    long bytes = state.slotBytes(region);
    if (from != to) {
      kernels.elementwise().copy(region, from * bytes, region, to * bytes, bytes);
    }
  }

  private static void clear(MetalKernels kernels, Region region, MetalState state, int slot) {
    long bytes = state.slotBytes(region);
    kernels.elementwise().clear(region, slot * bytes, bytes);
  }

  /**
   * Whether one is to or from a page or a slot.
   *
   * @param kind {@link #PAGE}, or {@link #SLOT} for all that is done to slots
   */
  boolean concern(int kind, int index) {
    for (int i = 0; i < size; i += WORDS) {
      boolean sameKind = (entries[i] == PAGE) == (kind == PAGE);
      if (sameKind && (entries[i + 1] == index || entries[i + 2] == index)) {
        return true;
      }
    }
    return false;
  }

  /** Makes all of them on the host and forgets them. No pass may be in flight or be recorded. */
  void make(MetalState state) {
    for (int i = 0; i < size; i += WORDS) {
      int from = entries[i + 1];
      int to = entries[i + 2];
      switch (entries[i]) {
        case SLOT -> {
          part(state, state.deltaRule().states(), to)
              .copyFrom(part(state, state.deltaRule().states(), from));
          part(state, state.deltaRule().windows(), to)
              .copyFrom(part(state, state.deltaRule().windows(), from));
        }
        case CLEAR -> {
          part(state, state.deltaRule().states(), to).fill((byte) 0);
          part(state, state.deltaRule().windows(), to).fill((byte) 0);
        }
        default -> {
          long bytes = state.pageBytes();
          MemorySegment pages = state.attention().pages().buffer().contents();
          MemorySegment.copy(pages, from * bytes, pages, to * bytes, bytes);
        }
      }
    }
    size = 0;
    recorded = 0;
  }

  private static MemorySegment part(MetalState state, Region region, int slot) {
    long bytes = state.slotBytes(region);
    return region.buffer().contents().asSlice(slot * bytes, bytes);
  }

  /** Forgets what was recorded. */
  void submitted() {
    System.arraycopy(entries, recorded, entries, 0, size - recorded);
    size -= recorded;
    recorded = 0;
  }
}
