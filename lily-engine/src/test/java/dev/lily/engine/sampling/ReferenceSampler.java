package dev.lily.engine.sampling;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;

/**
 * The steps of sampling as a textbook has them: double precision, sorted lists, one after another.
 */
public final class ReferenceSampler {
  private ReferenceSampler() {}

  static int sample(
      float[] logits,
      SamplingParameters parameters,
      List<Integer> prompt,
      List<Integer> generated,
      long @Nullable [] allowed) {
    Map<Integer, Double> distribution =
        distribution(logits, parameters, prompt, generated, allowed);
    SplittableRandom random = new SplittableRandom(parameters.seed());
    long number = 0;
    for (int step = 0; step <= generated.size(); step++) {
      number = random.nextLong();
    }
    double u = (number >>> 11) * 0x1p-53;
    double sum = 0;
    int token = -1;
    for (int id : distribution.keySet().stream().sorted().toList()) {
      token = id;
      sum += distribution.get(id);
      if (u < sum) {
        break;
      }
    }
    return token;
  }

  /** Tokens that can be drawn, with their probabilities. */
  public static Map<Integer, Double> distribution(
      float[] logits,
      SamplingParameters parameters,
      List<Integer> prompt,
      List<Integer> generated,
      long @Nullable [] allowed) {
    Map<Integer, Double> adjusted = new HashMap<>();
    for (int id = 0; id < logits.length; id++) {
      if (allowed == null || (allowed[id / 64] >>> (id % 64) & 1) == 1) {
        if (logits[id] > Float.NEGATIVE_INFINITY) {
          adjusted.put(id, (double) logits[id]);
        }
      }
    }
    for (int i = 0; i < parameters.biasTokens().length; i++) {
      float bias = parameters.biasValues()[i];
      adjusted.computeIfPresent(parameters.biasTokens()[i], (id, logit) -> logit + bias);
    }
    adjusted.replaceAll(
        (id, logit) -> {
          long count = generated.stream().filter(id::equals).count();
          if (count > 0 || prompt.contains(id)) {
            logit =
                logit > 0
                    ? logit / parameters.repetitionPenalty()
                    : logit * parameters.repetitionPenalty();
          }
          return logit
              - (count > 0 ? parameters.presencePenalty() : 0)
              - count * parameters.frequencyPenalty();
        });
    List<Integer> ids = new ArrayList<>(adjusted.keySet());
    ids.sort(
        Comparator.comparing((Integer id) -> adjusted.get(id))
            .reversed()
            .thenComparing(Comparator.naturalOrder()));
    if (parameters.temperature() == 0) {
      return Map.of(ids.getFirst(), 1.0);
    }
    if (parameters.topK() > 0) {
      ids = ids.subList(0, Math.min(parameters.topK(), ids.size()));
    }
    double max = adjusted.get(ids.getFirst());
    Map<Integer, Double> kept = new LinkedHashMap<>();
    for (int id : ids) {
      kept.put(id, Math.exp((adjusted.get(id) - max) / parameters.temperature()));
    }
    normalize(kept);
    double sum = 0;
    Map<Integer, Double> nucleus = new LinkedHashMap<>();
    for (int id : ids) {
      if (nucleus.isEmpty() || sum < parameters.topP()) {
        nucleus.put(id, kept.get(id));
        sum += kept.get(id);
      }
    }
    double likeliest = nucleus.get(ids.getFirst());
    nucleus.values().removeIf(p -> p < parameters.minP() * likeliest);
    normalize(nucleus);
    return nucleus;
  }

  private static void normalize(Map<Integer, Double> distribution) {
    double sum = distribution.values().stream().mapToDouble(Double::doubleValue).sum();
    distribution.replaceAll((id, p) -> p / sum);
  }
}
