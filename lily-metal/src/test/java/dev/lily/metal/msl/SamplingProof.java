package dev.lily.metal.msl;

import dev.lily.engine.sampling.SamplingParameters;
import java.util.List;

/** The whole sampler over the 35B's vocabulary: the engine's own sampler says what is right. */
final class SamplingProof {
  private final Proof proof;
  private final int vocabulary;

  SamplingProof(Proof proof) {
    this.proof = proof;
    vocabulary = proof.pick(4200, 20_000, 248_320);
  }

  void run() {
    // Greedy; top-k and top-p; everything at once; the whole distribution with min-p.
    SamplingParameters[] parameters = {
      parameters(0, 0, 1, 0, -1),
      parameters(0.6f, 20, 0.95f, 0, 20),
      new SamplingParameters(
          0.8f,
          0,
          0.9f,
          0.02f,
          0.5f,
          0.3f,
          1.1f,
          new int[] {3, 40, vocabulary - 1},
          new float[] {3, -100, 4},
          proof.bits(),
          5),
      parameters(1, 0, 1, 0.05f, 0),
    };
    SamplingKernelCpuRunTest.Slots slots =
        new SamplingKernelCpuRunTest.Slots(vocabulary, parameters.length);
    slots.kernels = proof.kernels();
    for (int slot = 0; slot < parameters.length; slot++) {
      slots.begin(slot, parameters[slot], new int[] {1, 2, 3, 4100});
    }
    long[] allowed = new long[Math.ceilDiv(vocabulary, 64)];
    for (int i = 0; i < allowed.length; i++) {
      allowed[i] = proof.bits();
    }
    slots.mask(3, allowed);
    int steps = proof.pick(2, 4, 12);
    for (int step = 0; step < steps; step++) {
      // Few logits stand out, as a model's do.
      float[] logits = proof.uniform(parameters.length * vocabulary, -8, 4);
      for (int i = 0; i < 40 * parameters.length; i++) {
        logits[proof.below(logits.length)] += proof.below(8);
      }
      slots.sampleAndCompare(logits);
    }
    proof
        .dispatched()
        .addAll(
            List.of(
                "sample_candidates",
                "sample_choose",
                "sample_raw_candidates",
                "sample_raw_weights",
                "sample_report"));
    proof.checkExact(
        "sample_*", parameters.length + " rows x " + vocabulary + ", " + steps + " steps", true);
  }

  private SamplingParameters parameters(
      float temperature, int topK, float topP, float minP, int topLogprobs) {
    return new SamplingParameters(
        temperature,
        topK,
        topP,
        minP,
        0,
        0,
        1,
        new int[0],
        new float[0],
        proof.bits(),
        topLogprobs);
  }
}
