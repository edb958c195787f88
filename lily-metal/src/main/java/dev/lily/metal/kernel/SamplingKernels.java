package dev.lily.metal.kernel;

import dev.lily.metal.device.ComputePipeline;
import java.util.List;

/** The sampler. */
public final class SamplingKernels {
  static final List<String> NAMES =
      List.of(
          "sample_candidates",
          "sample_raw_candidates",
          "sample_choose",
          "sample_raw_weights",
          "sample_report");

  /** Tokens that one threadgroup lists. */
  public static final int BLOCK = 4096;

  /** Words of a row's result. */
  public static final int RESULT_WORDS = 64;

  private static final int THREADS = 256;
  private static final int ROW_THREADS = 1024;

  private final KernelEncoder encoder;
  private final ComputePipeline candidates;
  private final ComputePipeline rawCandidates;
  private final ComputePipeline choose;
  private final ComputePipeline rawWeights;
  private final ComputePipeline report;

  public SamplingKernels(KernelLibrary library, KernelEncoder encoder) {
    this.encoder = encoder;
    candidates = library.pipeline("sample_candidates");
    rawCandidates = library.pipeline("sample_raw_candidates");
    choose = library.pipeline("sample_choose");
    rawWeights = library.pipeline("sample_raw_weights");
    report = library.pipeline("sample_report");
  }

  /** Blocks of a vocabulary. */
  public static int blocks(int vocabulary) {
    return KernelEncoder.ceilDiv(vocabulary, BLOCK);
  }

  /**
   * What sampling keeps on the device.
   *
   * @param maskWords 32-bit words of a slot's mask
   * @param maxBiases entries of a slot's list of biases
   * @param ids scratch of {@code [rows, blocks, 4096]} words; {@code values} likewise
   * @param sizes scratch of {@code [rows, blocks]} words; {@code sums} of as many double words
   */
  public record Slots(
      int vocabulary,
      int maskWords,
      int maxBiases,
      Region slots,
      Region masks,
      Region counts,
      Region biasTokens,
      Region biasValues,
      Region lastTokens,
      Region ids,
      Region values,
      Region sizes,
      Region sums) {}

  /**
   * Chooses a token for each of some sampled rows of the plan, which have different slots.
   *
   * @param firstRow number of the first sampled row
   * @param hasLogprobs whether any of them asks for log-probabilities
   * @param results a result for each sampled row of the pass
   */
  public void sample(
      DevicePlan plan,
      Region logits,
      int firstRow,
      int rows,
      Slots slots,
      boolean hasLogprobs,
      Region results) {
    int blocks = blocks(slots.vocabulary);
    candidates(candidates, plan, logits, firstRow, rows, slots);

    encoder.kernel(choose);
    plan.bindSampledRows(encoder, firstRow);
    encoder
        .write(slots.slots)
        .read(slots.ids)
        .read(slots.values)
        .read(slots.sizes)
        .write(slots.counts)
        .write(slots.lastTokens)
        .write(results, resultOffset(firstRow));
    parameters(slots);
    encoder.dispatch(rows, 1, 1, ROW_THREADS);
    if (!hasLogprobs) {
      return;
    }
    candidates(rawCandidates, plan, logits, firstRow, rows, slots);

    encoder.kernel(rawWeights).read(logits);
    plan.bindSampledRows(encoder, firstRow);
    encoder.read(slots.slots).read(slots.values).read(slots.sizes).write(slots.sums);
    parameters(slots);
    encoder.dispatch(blocks, rows, 1, THREADS);

    encoder.kernel(report).read(logits);
    plan.bindSampledRows(encoder, firstRow);
    encoder
        .read(slots.slots)
        .read(slots.ids)
        .read(slots.values)
        .read(slots.sizes)
        .read(slots.sums)
        .write(results, resultOffset(firstRow));
    parameters(slots);
    encoder.dispatch(rows, 1, 1, ROW_THREADS);
  }

  private static long resultOffset(int row) {
    return (long) row * RESULT_WORDS * Integer.BYTES;
  }

  private void candidates(
      ComputePipeline kernel, DevicePlan plan, Region logits, int firstRow, int rows, Slots slots) {
    encoder.kernel(kernel).read(logits);
    plan.bindSampledRows(encoder, firstRow);
    encoder
        .read(slots.slots)
        .read(slots.masks)
        .read(slots.counts)
        .read(slots.biasTokens)
        .read(slots.biasValues)
        .write(slots.ids)
        .write(slots.values)
        .write(slots.sizes);
    parameters(slots);
    encoder.dispatch(blocks(slots.vocabulary), rows, 1, THREADS);
  }

  private void parameters(Slots slots) {
    encoder
        .field(slots.vocabulary)
        .field(blocks(slots.vocabulary))
        .field(slots.maskWords)
        .field(slots.maxBiases)
        .parameters();
  }
}
