package dev.lily.engine.sampling;

import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * A complete set of sampling parameters for one sequence, in the form a back end takes them. Steps
 * are applied in this order: logit bias, penalties, temperature, top-k, top-p, min-p, draw.
 *
 * @param temperature 0 means arg max
 * @param topK 0 means off
 * @param topP 1 means off
 * @param minP 0 means off
 * @param presencePenalty 0 means off
 * @param frequencyPenalty 0 means off
 * @param repetitionPenalty 1 means off
 * @param biasTokens token ids with a bias, ascending; handed over, not copied
 * @param biasValues the bias of each of {@code biasTokens}; handed over, not copied
 * @param seed start of the counter-based random numbers of this sequence
 * @param topLogprobs how many alternatives to report per token, 0 to {@value #MAX_TOP_LOGPROBS}; -1
 *     reports no log-probability at all
 */
public record SamplingParameters(
    float temperature,
    int topK,
    float topP,
    float minP,
    float presencePenalty,
    float frequencyPenalty,
    float repetitionPenalty,
    int[] biasTokens,
    float[] biasValues,
    long seed,
    int topLogprobs) {

  /** The most alternatives that can be reported per token. */
  public static final int MAX_TOP_LOGPROBS = 20;

  public SamplingParameters {
    check("temperature", temperature, 0, Float.MAX_VALUE);
    check("topK", topK, 0, Integer.MAX_VALUE);
    check("topP", topP, 0, 1);
    check("minP", minP, 0, 1);
    check("presencePenalty", presencePenalty, -2, 2);
    check("frequencyPenalty", frequencyPenalty, -2, 2);
    check("repetitionPenalty", repetitionPenalty, Float.MIN_NORMAL, 10);
    checkBias(biasTokens, biasValues);
    if (topLogprobs < -1 || topLogprobs > MAX_TOP_LOGPROBS) {
      throw new InvalidSamplingException(
          "topLogprobs",
          "topLogprobs is " + topLogprobs + "; it must be between 0 and " + MAX_TOP_LOGPROBS);
    }
  }

  private static void check(String option, double value, double min, double max) {
    if (!(value >= min && value <= max)) {
      throw new InvalidSamplingException(
          option, option + " is " + value + "; it must be between " + min + " and " + max);
    }
  }

  private static void checkBias(int[] tokens, float[] values) {
    if (tokens.length != values.length) {
      throw new InvalidSamplingException(
          "logitBias",
          "There are " + tokens.length + " tokens with a bias and " + values.length + " biases");
    }
    for (int i = 0; i < tokens.length; i++) {
      if (tokens[i] < 0 || (i > 0 && tokens[i] <= tokens[i - 1])) {
        throw new InvalidSamplingException(
            "logitBias",
            "Token "
                + tokens[i]
                + " stands at index "
                + i
                + " of biasTokens; they must be 0 or more and ascend");
      }
      check("logitBias", values[i], -100, 100);
    }
  }

  /** Whether the likeliest token is always taken, without a draw. */
  public boolean isGreedy() {
    return temperature == 0 || topK == 1;
  }

  /**
   * Completes options; what they leave unsaid is off (temperature 1).
   *
   * @param seed used when the options name none
   * @param topLogprobs -1 for none
   */
  public static SamplingParameters of(SamplingOptions options, long seed, int topLogprobs) {
    Map<Integer, Double> bias =
        options.logitBias() == null ? Map.of() : new TreeMap<>(options.logitBias());
    int[] tokens = new int[bias.size()];
    float[] values = new float[bias.size()];
    int i = 0;
    for (Map.Entry<Integer, Double> entry : bias.entrySet()) {
      tokens[i] = entry.getKey();
      values[i++] = entry.getValue().floatValue();
    }
    Integer topK = options.topK();
    return new SamplingParameters(
        orElse(options.temperature(), 1),
        topK == null ? 0 : Math.max(0, topK),
        orElse(options.topP(), 1),
        orElse(options.minP(), 0),
        orElse(options.presencePenalty(), 0),
        orElse(options.frequencyPenalty(), 0),
        Math.max(orElse(options.repetitionPenalty(), 1), Float.MIN_NORMAL),
        tokens,
        values,
        options.seed() == null ? seed : options.seed(),
        topLogprobs);
  }

  private static float orElse(@Nullable Double value, double unset) {
    return (float) (value == null ? unset : value);
  }
}
