package dev.lily.metal.msl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.lily.engine.sampling.SampledToken;
import dev.lily.engine.sampling.Sampler;
import dev.lily.engine.sampling.SamplerState;
import dev.lily.engine.sampling.SamplingException;
import dev.lily.engine.sampling.SamplingParameters;
import dev.lily.metal.msl.CpuKernels.Geometry;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The kernels against the engine's sampler, token by token. */
class SamplingKernelCpuRunTest {
  private static final int SLOT_BYTES = 64;
  private static final int RESULT_WORDS = 64;
  private static final int MAX_BIASES = 8;

  /** Sampling slots on the device and their twins. */
  static final class Slots {
    final int vocabulary;
    final int count;
    final int blocks;
    final int maskWords;
    final MemorySegment slots;
    final MemorySegment masks;
    final MemorySegment counts;
    final MemorySegment biasTokens;
    final MemorySegment biasValues;
    final MemorySegment lastTokens;
    final SamplerState[] twins;
    final Sampler sampler;
    CpuKernels kernels = Tools.kernels();

    Slots(int vocabulary, int count) {
      this.vocabulary = vocabulary;
      this.count = count;
      blocks = Math.ceilDiv(vocabulary, 4096);
      maskWords = Math.ceilDiv(vocabulary, 64) * 2;
      slots = Data.poisoned((long) count * SLOT_BYTES);
      masks = Data.poisoned(4L * count * maskWords);
      counts = Data.bytes(4L * count * vocabulary).fill((byte) 0);
      biasTokens = Data.poisoned(4L * count * MAX_BIASES);
      biasValues = Data.poisonedF32(count * MAX_BIASES);
      lastTokens = Data.poisoned(4L * count);
      twins = new SamplerState[count];
      for (int i = 0; i < count; i++) {
        twins[i] = new SamplerState(vocabulary);
      }
      sampler = new Sampler(vocabulary);
    }

    void begin(int slot, SamplingParameters p, int[] prompt) {
      twins[slot].begin(p, prompt);
      MemorySegment s = slots.asSlice((long) slot * SLOT_BYTES, SLOT_BYTES);
      s.set(ValueLayout.JAVA_LONG, 0, p.seed());
      s.set(ValueLayout.JAVA_LONG, 8, 0L);
      float inverse = p.isGreedy() ? 1 : Math.min(1 / p.temperature(), Float.MAX_VALUE);
      s.set(ValueLayout.JAVA_FLOAT, 16, inverse);
      s.set(ValueLayout.JAVA_INT, 20, p.isGreedy() ? 1 : p.topK());
      s.set(ValueLayout.JAVA_INT, 24, p.topP() < 1 ? (int) Math.round(p.topP() * 0x1p30) : 1 << 30);
      long least = p.minP() > 0 ? (long) Math.ceil((double) p.minP() * 0x1p40) : 0;
      s.set(ValueLayout.JAVA_INT, 28, (int) least);
      s.set(ValueLayout.JAVA_INT, 32, (int) (least >>> 32));
      s.set(ValueLayout.JAVA_FLOAT, 36, p.presencePenalty());
      s.set(ValueLayout.JAVA_FLOAT, 40, p.frequencyPenalty());
      s.set(ValueLayout.JAVA_FLOAT, 44, p.repetitionPenalty());
      boolean penalties =
          p.repetitionPenalty() != 1 || p.presencePenalty() != 0 || p.frequencyPenalty() != 0;
      s.set(ValueLayout.JAVA_INT, 48, penalties ? 1 : 0);
      s.set(ValueLayout.JAVA_INT, 52, 0);
      s.set(ValueLayout.JAVA_INT, 56, p.biasTokens().length);
      s.set(ValueLayout.JAVA_INT, 60, p.topLogprobs());
      for (int i = 0; i < p.biasTokens().length; i++) {
        biasTokens.setAtIndex(
            ValueLayout.JAVA_INT, (long) slot * MAX_BIASES + i, p.biasTokens()[i]);
        biasValues.setAtIndex(
            ValueLayout.JAVA_FLOAT, (long) slot * MAX_BIASES + i, p.biasValues()[i]);
      }
      if (p.repetitionPenalty() != 1) {
        for (int token : prompt) {
          counts.setAtIndex(ValueLayout.JAVA_INT, (long) slot * vocabulary + token, 1 << 31);
        }
      }
    }

    void mask(int slot, long[] allowed) {
      twins[slot].mask(allowed);
      slots.set(ValueLayout.JAVA_INT, (long) slot * SLOT_BYTES + 52, 1);
      MemorySegment.copy(
          allowed, 0, masks, ValueLayout.JAVA_LONG, 4L * slot * maskWords, allowed.length);
    }

    /** One row per slot, slots in descending order. */
    int[] sample(float[] logits) {
      int[] rows = new int[2 * count];
      for (int i = 0; i < count; i++) {
        rows[2 * i] = i;
        rows[2 * i + 1] = count - 1 - i;
      }
      MemorySegment list = Data.ints(rows);
      MemorySegment values = Data.f32(logits);
      MemorySegment ids = Data.poisoned(4L * count * blocks * 4096);
      MemorySegment listed = Data.poisoned(4L * count * blocks * 4096);
      MemorySegment sizes = Data.poisoned(4L * count * blocks);
      MemorySegment sums = Data.poisoned(8L * count * blocks);
      MemorySegment results = Data.poisoned(4L * count * RESULT_WORDS);
      MemorySegment parameters = Data.struct(vocabulary, blocks, maskWords, MAX_BIASES);
      Geometry perBlock = Geometry.of(blocks, count, 1, 256);
      Geometry perRow = Geometry.of(count, 1024);
      kernels.dispatch(
          "sample_candidates",
          perBlock,
          values,
          list,
          slots,
          masks,
          counts,
          biasTokens,
          biasValues,
          ids,
          listed,
          sizes,
          parameters);
      kernels.dispatch(
          "sample_choose",
          perRow,
          list,
          slots,
          ids,
          listed,
          sizes,
          counts,
          lastTokens,
          results,
          parameters);
      kernels.dispatch(
          "sample_raw_candidates",
          perBlock,
          values,
          list,
          slots,
          masks,
          counts,
          biasTokens,
          biasValues,
          ids,
          listed,
          sizes,
          parameters);
      kernels.dispatch(
          "sample_raw_weights", perBlock, values, list, slots, listed, sizes, sums, parameters);
      kernels.dispatch(
          "sample_report",
          perRow,
          values,
          list,
          slots,
          ids,
          listed,
          sizes,
          sums,
          results,
          parameters);
      return Data.readInts(results);
    }

    /** Samples on both sides and compares everything that is reported. */
    void sampleAndCompare(float[] logits) {
      int[] results = sample(logits);
      SampledToken out = new SampledToken();
      for (int i = 0; i < count; i++) {
        int slot = count - 1 - i;
        out.clear();
        int token = -1;
        try {
          token = sampler.sample(logits, i * vocabulary, twins[slot], out);
        } catch (SamplingException e) {
          assertThat(e).isNotNull();
        }
        int at = i * RESULT_WORDS;
        assertThat(results[at]).as("row %d, step %d", i, twins[slot].step()).isEqualTo(token);
        assertThat(slots.get(ValueLayout.JAVA_LONG, (long) slot * SLOT_BYTES + 8))
            .isEqualTo(twins[slot].step());
        if (token >= 0) {
          assertThat(lastTokens.getAtIndex(ValueLayout.JAVA_INT, slot)).isEqualTo(token);
          compareLogprobs(results, at, twins[slot], out);
        }
      }
    }

    private static void compareLogprobs(
        int[] results, int at, SamplerState twin, SampledToken out) {
      if (twin.parameters().topLogprobs() < 0) {
        return;
      }
      float largest = Float.intBitsToFloat(results[at + 2]);
      long total = results[at + 3] & 0xFFFFFFFFL | (long) results[at + 4] << 32;
      double logTotal = Math.log((double) total / 0x1p40);
      assertThat(logprob(Float.intBitsToFloat(results[at + 1]), largest, logTotal))
          .isEqualTo(out.logprob());
      assertThat(results[at + 5]).isEqualTo(out.numTopLogprobs());
      for (int rank = 0; rank < out.numTopLogprobs(); rank++) {
        assertThat(results[at + 6 + rank]).isEqualTo(out.topToken(rank));
        assertThat(logprob(Float.intBitsToFloat(results[at + 26 + rank]), largest, logTotal))
            .isCloseTo(out.topLogprob(rank), within(0f));
      }
    }

    private static float logprob(float logit, float largest, double logTotal) {
      return (float) ((logit == largest ? 0 : (double) logit - largest) - logTotal);
    }
  }

  private static SamplingParameters parameters(
      float temperature, int topK, float topP, float minP, long seed, int topLogprobs) {
    return new SamplingParameters(
        temperature, topK, topP, minP, 0, 0, 1, new int[0], new float[0], seed, topLogprobs);
  }

  @ParameterizedTest
  @CsvSource({
    "100, 0, 0, 1, 0", "100, 1, 0, 1, 0", "100, 0.7, 20, 0.8, 0", "5000, 1, 20, 0.95, 0",
    "5000, 1.5, 0, 0.9, 0", "5000, 1, 300, 0.5, 0.1", "9000, 0.8, 0, 1, 0.05",
        "4097, 2, 4096, 0.99, 0.001",
    "13, 1, 5, 0, 1", "64, 3.5, 64, 1, 0",
  })
  void choosesWhatTheSamplerChooses(
      int vocabulary, float temperature, int topK, float topP, float minP) {
    Data data = new Data(vocabulary + topK);
    Slots slots = new Slots(vocabulary, 2);
    for (int slot = 0; slot < 2; slot++) {
      slots.begin(
          slot, parameters(temperature, topK, topP, minP, 11 + slot, 5 * slot - 1), new int[0]);
    }
    for (int step = 0; step < 5; step++) {
      slots.kernels = Tools.kernels().inOrder(CpuKernels.ORDERS[step]);
      slots.sampleAndCompare(data.uniform(2 * vocabulary, -6, 6));
    }
  }

  @Test
  void keepsTheLowerIdsAmongEqualLogits() {
    Data data = new Data(4);
    Slots slots = new Slots(8200, 3);
    slots.begin(0, parameters(1, 7, 0.9f, 0, 1, 20), new int[0]);
    slots.begin(1, parameters(1, 0, 0.3f, 0, 2, 3), new int[0]);
    slots.begin(2, parameters(0, 0, 1, 0, 3, 0), new int[0]);
    for (int step = 0; step < 6; step++) {
      float[] logits = new float[3 * 8200];
      for (int i = 0; i < logits.length; i++) {
        logits[i] = data.below(3) - 1;
      }
      slots.sampleAndCompare(logits);
    }
  }

  @Test
  void appliesMaskBiasAndPenalties() {
    Data data = new Data(6);
    int vocabulary = 300;
    Slots slots = new Slots(vocabulary, 2);
    SamplingParameters all =
        new SamplingParameters(
            0.9f,
            0,
            0.95f,
            0,
            0.5f,
            0.3f,
            1.2f,
            new int[] {3, 40, 299},
            new float[] {5, -100, 4},
            77,
            2);
    slots.begin(0, all, new int[] {1, 2, 3, 290, 290});
    slots.begin(1, all, new int[0]);
    long[] allowed = new long[(vocabulary + 63) / 64];
    Arrays.fill(allowed, 0x00FF_00FF_F0F0_1234L);
    slots.mask(1, allowed);
    for (int step = 0; step < 12; step++) {
      slots.sampleAndCompare(data.uniform(2 * vocabulary, -1.5, 1.5));
    }
  }

  @Test
  void standsDamagedLogits() {
    Slots slots = new Slots(100, 3);
    for (int slot = 0; slot < 3; slot++) {
      slots.begin(slot, parameters(1, slot, 0.9f, 0.1f, slot, 3), new int[0]);
    }
    float[] logits = new Data(1).uniform(300, -3, 3);
    Arrays.fill(logits, 0, 100, Float.NaN);
    logits[150] = Float.POSITIVE_INFINITY;
    logits[160] = Float.POSITIVE_INFINITY;
    Arrays.fill(logits, 200, 299, Float.NEGATIVE_INFINITY);
    logits[210] = Float.NaN;
    slots.sampleAndCompare(logits);
  }
}
