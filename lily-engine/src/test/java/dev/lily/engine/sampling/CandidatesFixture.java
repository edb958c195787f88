package dev.lily.engine.sampling;

import java.util.Arrays;

/** Builds candidates from plain numbers and reads them back. */
final class CandidatesFixture {
  private CandidatesFixture() {}

  /** Ids 0, 1, 2… with these logits; weights are not set. */
  static Candidates ofLogits(float... logits) {
    Candidates candidates = new Candidates(logits.length);
    for (int id = 0; id < logits.length; id++) {
      candidates.add(id, logits[id]);
    }
    return candidates;
  }

  /** Ids 0, 1, 2… with logits whose softmax is these probabilities, weighed at temperature 1. */
  static Candidates ofProbabilities(double... probabilities) {
    Candidates candidates = ofLogits(logits(probabilities));
    Temperature.apply(1, candidates);
    return candidates;
  }

  static float[] logits(double... probabilities) {
    float[] logits = new float[probabilities.length];
    for (int i = 0; i < logits.length; i++) {
      logits[i] = (float) Math.log(probabilities[i]);
    }
    return logits;
  }

  static int[] ids(Candidates candidates) {
    return Arrays.copyOf(candidates.ids, candidates.size);
  }

  static long[] weights(Candidates candidates) {
    return Arrays.copyOf(candidates.weights, candidates.size);
  }
}
