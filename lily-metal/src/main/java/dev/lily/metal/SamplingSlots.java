package dev.lily.metal;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.lily.engine.backend.StateLayout;
import dev.lily.engine.sampling.InvalidSamplingException;
import dev.lily.engine.sampling.SamplingParameters;
import dev.lily.metal.kernel.DeviceMemory;
import dev.lily.metal.kernel.Region;
import dev.lily.metal.kernel.SamplingKernels;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Sampling state of all sequences in memory that the sampler's kernels read and advance. Written by
 * the host only while no pass is in flight.
 */
final class SamplingSlots {
  private static final int SLOT_BYTES = 64;
  private static final int STEP = 8;
  private static final int PROMPT_TOKEN = 1 << 31;
  private static final int FIRST_MAX_BIASES = 32;
  private static final int TOP_P_OFF = 1 << 30;

  private final DeviceMemory memory;
  private final int vocabulary;
  private final int numSlots;
  private final int[] topLogprobs;
  private SamplingKernels.Slots device;

  SamplingSlots(DeviceMemory memory, StateLayout layout, int maxSequences) {
    this.memory = memory;
    vocabulary = layout.vocabularySize();
    numSlots = layout.numSamplingSlots();
    topLogprobs = new int[numSlots];
    long lists = (long) maxSequences * SamplingKernels.blocks(vocabulary);
    device =
        new SamplingKernels.Slots(
            vocabulary,
            maskWords(vocabulary),
            FIRST_MAX_BIASES,
            region((long) numSlots * SLOT_BYTES),
            region((long) numSlots * maskWords(vocabulary) * Integer.BYTES),
            region((long) numSlots * vocabulary * Integer.BYTES),
            region((long) numSlots * FIRST_MAX_BIASES * Integer.BYTES),
            region((long) numSlots * FIRST_MAX_BIASES * Float.BYTES),
            region((long) numSlots * Integer.BYTES),
            region(lists * SamplingKernels.BLOCK * Integer.BYTES),
            region(lists * SamplingKernels.BLOCK * Float.BYTES),
            region(lists * Integer.BYTES),
            region(lists * Long.BYTES));
  }

  private Region region(long bytes) {
    return new Region(memory.allocatePoisoned(bytes));
  }

  private static int maskWords(int vocabulary) {
    return (vocabulary + 63) / 64 * 2;
  }

  /** Bytes of the slots. */
  static long bytes(StateLayout layout) {
    int vocabulary = layout.vocabularySize();
    return layout.numSamplingSlots()
        * (SLOT_BYTES
            + (long) Integer.BYTES
                * (maskWords(vocabulary) + vocabulary + 2 * FIRST_MAX_BIASES + 1));
  }

  /** Bytes of the scratch. */
  static long scratchBytes(int vocabulary, int maxSequences) {
    return (long) maxSequences
        * SamplingKernels.blocks(vocabulary)
        * (SamplingKernels.BLOCK * 8L + Integer.BYTES + Long.BYTES);
  }

  SamplingKernels.Slots device() {
    return device;
  }

  /** Alternatives that a slot reports; -1 if it reports no log-probabilities or does not exist. */
  int topLogprobs(int slot) {
    return slot >= 0 && slot < numSlots ? topLogprobs[slot] : -1;
  }

  void begin(int slot, SamplingParameters p, int[] promptTokens) {
    int[] biased = p.biasTokens();
    if (biased.length > 0 && biased[biased.length - 1] >= vocabulary) {
      throw new InvalidSamplingException(
          "logitBias",
          "logitBias names token id "
              + biased[biased.length - 1]
              + "; the model's ids end at "
              + (vocabulary - 1));
    }
    boolean promptCounts = p.repetitionPenalty() != 1;
    for (int i = 0; promptCounts && i < promptTokens.length; i++) {
      if (promptTokens[i] < 0 || promptTokens[i] >= vocabulary) {
        throw new IllegalArgumentException(
            "Prompt token id is " + promptTokens[i] + "; ids run from 0 to " + (vocabulary - 1));
      }
    }
    writeBiases(slot, p);
    writeSlot(slot, p);
    MemorySegment counts =
        device.counts().buffer().contents().asSlice(4L * slot * vocabulary, 4L * vocabulary);
    counts.fill((byte) 0);
    for (int i = 0; promptCounts && i < promptTokens.length; i++) {
      counts.setAtIndex(JAVA_INT, promptTokens[i], PROMPT_TOKEN);
    }
    device.lastTokens().buffer().contents().setAtIndex(JAVA_INT, slot, 0);
    topLogprobs[slot] = p.topLogprobs();
  }

  private MemorySegment slot(int slot) {
    return device.slots().buffer().contents().asSlice((long) slot * SLOT_BYTES, SLOT_BYTES);
  }

  private void writeSlot(int slot, SamplingParameters p) {
    MemorySegment s = slot(slot);
    s.set(JAVA_LONG, 0, p.seed());
    s.set(JAVA_LONG, STEP, 0L);
    float inverse = p.isGreedy() ? 1 : Math.min(1 / p.temperature(), Float.MAX_VALUE);
    s.set(JAVA_FLOAT, 16, inverse);
    s.set(JAVA_INT, 20, p.isGreedy() ? 1 : p.topK());
    s.set(JAVA_INT, 24, p.topP() < 1 ? (int) Math.round(p.topP() * 0x1p30) : TOP_P_OFF);
    long leastWeight = p.minP() > 0 ? (long) Math.ceil((double) p.minP() * 0x1p40) : 0;
    s.set(JAVA_INT, 28, (int) leastWeight);
    s.set(JAVA_INT, 32, (int) (leastWeight >>> 32));
    s.set(JAVA_FLOAT, 36, p.presencePenalty());
    s.set(JAVA_FLOAT, 40, p.frequencyPenalty());
    s.set(JAVA_FLOAT, 44, p.repetitionPenalty());
    boolean penalties =
        p.repetitionPenalty() != 1 || p.presencePenalty() != 0 || p.frequencyPenalty() != 0;
    s.set(JAVA_INT, 48, penalties ? 1 : 0);
    s.set(JAVA_INT, 52, 0);
    s.set(JAVA_INT, 56, p.biasTokens().length);
    s.set(JAVA_INT, 60, p.topLogprobs());
  }

  private void writeBiases(int slot, SamplingParameters p) {
    int count = p.biasTokens().length;
    if (count > device.maxBiases()) {
      growBiases(Math.max(count, 2 * device.maxBiases()));
    }
    long first = (long) slot * device.maxBiases();
    for (int i = 0; i < count; i++) {
      device.biasTokens().buffer().contents().setAtIndex(JAVA_INT, first + i, p.biasTokens()[i]);
      device.biasValues().buffer().contents().setAtIndex(JAVA_FLOAT, first + i, p.biasValues()[i]);
    }
  }

  private void growBiases(int maxBiases) {
    Region tokens = grown(device.biasTokens(), maxBiases);
    Region values = grown(device.biasValues(), maxBiases);
    device =
        new SamplingKernels.Slots(
            vocabulary,
            device.maskWords(),
            maxBiases,
            device.slots(),
            device.masks(),
            device.counts(),
            tokens,
            values,
            device.lastTokens(),
            device.ids(),
            device.values(),
            device.sizes(),
            device.sums());
  }

  private Region grown(Region lists, int maxBiases) {
    long oldBytes = (long) device.maxBiases() * Integer.BYTES;
    long newBytes = (long) maxBiases * Integer.BYTES;
    Region grown = region(numSlots * newBytes);
    for (int slot = 0; slot < numSlots; slot++) {
      MemorySegment.copy(
          lists.buffer().contents(),
          slot * oldBytes,
          grown.buffer().contents(),
          slot * newBytes,
          oldBytes);
    }
    memory.release(lists.buffer());
    return grown;
  }

  void mask(int slot, long @Nullable [] allowed) {
    int words = device.maskWords() / 2;
    if (allowed != null) {
      if (allowed.length != words) {
        throw new IllegalArgumentException(
            "Token mask has "
                + allowed.length
                + " words; a vocabulary of "
                + vocabulary
                + " needs "
                + words);
      }
      MemorySegment.copy(
          allowed,
          0,
          device.masks().buffer().contents(),
          JAVA_LONG,
          (long) slot * words * Long.BYTES,
          words);
    }
    slot(slot).set(JAVA_INT, 52, allowed == null ? 0 : 1);
  }

  void rewind(int slot, int[] chosen, int count, int kept) {
    long step = slot(slot).get(JAVA_LONG, STEP);
    if (kept < 1 || kept > count || count > step) {
      throw new IllegalArgumentException(
          "Keeping %d of the last %d tokens of %d; at least 1 must stay"
              .formatted(kept, count, step));
    }
    MemorySegment counts = device.counts().buffer().contents();
    for (int i = count - 1; i >= kept; i--) {
      long at = (long) slot * vocabulary + Objects.checkIndex(chosen[i], vocabulary);
      counts.setAtIndex(JAVA_INT, at, counts.getAtIndex(JAVA_INT, at) - 1);
    }
    slot(slot).set(JAVA_LONG, STEP, step - (count - kept));
    device.lastTokens().buffer().contents().setAtIndex(JAVA_INT, slot, chosen[kept - 1]);
  }

  void release() {
    for (Region region :
        Arrays.asList(
            device.slots(),
            device.masks(),
            device.counts(),
            device.biasTokens(),
            device.biasValues(),
            device.lastTokens(),
            device.ids(),
            device.values(),
            device.sizes(),
            device.sums())) {
      memory.release(region.buffer());
    }
  }
}
