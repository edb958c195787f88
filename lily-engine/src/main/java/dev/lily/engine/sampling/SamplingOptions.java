package dev.lily.engine.sampling;

import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What a caller asks of sampling. A {@code null} means "not said": layers of options are put over
 * each other with {@link #orElse} and end in a complete {@link SamplingParameters}.
 *
 * @param temperature 0 means greedy (arg max, lowest id on ties); at most 100
 * @param topK keep the k likeliest tokens; 0 or -1 turns it off
 * @param topP keep the smallest set of likeliest tokens whose probability reaches p, in [0, 1]; at
 *     least one token always stays
 * @param minP drop tokens whose probability is below {@code minP} times the likeliest one's, [0, 1]
 * @param presencePenalty subtracted once from the logit of each token already generated, [-2, 2]
 * @param frequencyPenalty subtracted per occurrence in the generated tokens, [-2, 2]
 * @param repetitionPenalty divides positive and multiplies negative logits of tokens that occur in
 *     the prompt or the generated tokens, (0, 10]; 1 turns it off
 * @param logitBias added to the logit of a token id before everything else, each in [-100, 100]
 * @param seed makes the draw repeatable on one back end, whatever else runs beside it
 */
public record SamplingOptions(
    @Nullable Double temperature,
    @Nullable Integer topK,
    @Nullable Double topP,
    @Nullable Double minP,
    @Nullable Double presencePenalty,
    @Nullable Double frequencyPenalty,
    @Nullable Double repetitionPenalty,
    @Nullable Map<Integer, Double> logitBias,
    @Nullable Long seed) {

  /** Nothing said. */
  public static final SamplingOptions NONE = builder().build();

  /** Greedy decoding. */
  public static final SamplingOptions GREEDY = builder().temperature(0.0).build();

  public SamplingOptions {
    check("temperature", temperature, 0, 100);
    if (topK != null && topK < -1) {
      throw new InvalidSamplingException(
          "topK", "topK is " + topK + "; it must be at least 1, or 0 or -1 to turn it off");
    }
    check("topP", topP, 0, 1);
    check("minP", minP, 0, 1);
    check("presencePenalty", presencePenalty, -2, 2);
    check("frequencyPenalty", frequencyPenalty, -2, 2);
    check("repetitionPenalty", repetitionPenalty, Double.MIN_VALUE, 10);
    if (logitBias != null) {
      logitBias.forEach(
          (token, bias) -> {
            if (token == null || bias == null) {
              throw new InvalidSamplingException(
                  "logitBias",
                  "logitBias has the entry " + token + "=" + bias + "; both need a value");
            }
            if (token < 0) {
              throw new InvalidSamplingException(
                  "logitBias", "logitBias names token id " + token + "; ids are not negative");
            }
            check("logitBias", bias, -100, 100);
          });
      logitBias = Map.copyOf(logitBias);
    }
  }

  private static void check(String option, @Nullable Double value, double min, double max) {
    if (value != null && !(value >= min && value <= max)) {
      String low = min == Double.MIN_VALUE ? "above 0" : "at least " + min;
      throw new InvalidSamplingException(
          option, option + " is " + value + "; it must be " + low + " and at most " + max);
    }
  }

  /** These options, with what they leave unsaid taken from {@code defaults}. */
  public SamplingOptions orElse(SamplingOptions defaults) {
    return new SamplingOptions(
        temperature != null ? temperature : defaults.temperature,
        topK != null ? topK : defaults.topK,
        topP != null ? topP : defaults.topP,
        minP != null ? minP : defaults.minP,
        presencePenalty != null ? presencePenalty : defaults.presencePenalty,
        frequencyPenalty != null ? frequencyPenalty : defaults.frequencyPenalty,
        repetitionPenalty != null ? repetitionPenalty : defaults.repetitionPenalty,
        logitBias != null ? logitBias : defaults.logitBias,
        seed != null ? seed : defaults.seed);
  }

  public static Builder builder() {
    return new Builder();
  }

  /** Collects options by name; {@link #build} validates them. */
  public static final class Builder {
    private @Nullable Double temperature;
    private @Nullable Integer topK;
    private @Nullable Double topP;
    private @Nullable Double minP;
    private @Nullable Double presencePenalty;
    private @Nullable Double frequencyPenalty;
    private @Nullable Double repetitionPenalty;
    private @Nullable Map<Integer, Double> logitBias;
    private @Nullable Long seed;

    private Builder() {}

    public Builder temperature(@Nullable Double value) {
      temperature = value;
      return this;
    }

    public Builder topK(@Nullable Integer value) {
      topK = value;
      return this;
    }

    public Builder topP(@Nullable Double value) {
      topP = value;
      return this;
    }

    public Builder minP(@Nullable Double value) {
      minP = value;
      return this;
    }

    public Builder presencePenalty(@Nullable Double value) {
      presencePenalty = value;
      return this;
    }

    public Builder frequencyPenalty(@Nullable Double value) {
      frequencyPenalty = value;
      return this;
    }

    public Builder repetitionPenalty(@Nullable Double value) {
      repetitionPenalty = value;
      return this;
    }

    public Builder logitBias(@Nullable Map<Integer, Double> value) {
      logitBias = value;
      return this;
    }

    public Builder seed(@Nullable Long value) {
      seed = value;
      return this;
    }

    public SamplingOptions build() {
      return new SamplingOptions(
          temperature,
          topK,
          topP,
          minP,
          presencePenalty,
          frequencyPenalty,
          repetitionPenalty,
          logitBias,
          seed);
    }
  }
}
