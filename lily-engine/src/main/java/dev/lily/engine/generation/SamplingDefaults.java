package dev.lily.engine.generation;

import dev.lily.engine.sampling.InvalidSamplingException;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.engine.sampling.SamplingParameters;
import java.util.function.LongSupplier;

/**
 * Completes what a request leaves unsaid, in one order: the request, the application's defaults,
 * the profile of the mode, the checkpoint's {@code generation_config.json}; what none of them says
 * is off. Immutable and thread-safe if the source of seeds is.
 *
 * <p>A greedy request (temperature 0 or top-k 1, by the request or the application) takes neither
 * profile nor file: their penalties belong to random sampling, and whoever asks for temperature 0
 * expects the likeliest token.
 *
 * <p>The profiles come before the checkpoint's file because that file carries the values of the
 * thinking mode only. An application that wants other values for a checkpoint sets them as its
 * defaults.
 */
public final class SamplingDefaults {
  /** The model card's values for answers that begin with reasoning. */
  static final SamplingOptions THINKING =
      SamplingOptions.builder().temperature(1.0).topP(0.95).topK(20).build();

  /** The model card's values for direct answers. */
  static final SamplingOptions NON_THINKING =
      SamplingOptions.builder().temperature(0.7).topP(0.8).topK(20).presencePenalty(1.5).build();

  private final SamplingOptions application;
  private final SamplingOptions checkpoint;
  private final int vocabularySize;
  private final LongSupplier seeds;

  /**
   * @param application defaults set by whoever opened the engine
   * @param checkpoint from {@code generation_config.json}
   * @param vocabularySize token ids are below it
   * @param seeds gives the seed of a request that names none; called on callers' threads
   */
  public SamplingDefaults(
      SamplingOptions application,
      SamplingOptions checkpoint,
      int vocabularySize,
      LongSupplier seeds) {
    this.application = application;
    this.checkpoint = checkpoint;
    this.vocabularySize = vocabularySize;
    this.seeds = seeds;
  }

  /**
   * The parameters a request is sampled with.
   *
   * @param thinking the mode whose profile applies
   * @throws InvalidRequestException if an option makes no sense for this model
   */
  public SamplingParameters complete(GenerationRequest request, boolean thinking) {
    SamplingOptions asked = request.sampling().orElse(application);
    SamplingOptions options =
        isGreedy(asked) ? asked : asked.orElse(profile(thinking)).orElse(checkpoint);
    int topLogprobs = request.topLogprobs() == null ? -1 : request.topLogprobs();
    SamplingParameters parameters;
    try {
      parameters = SamplingParameters.of(options, seeds.getAsLong(), topLogprobs);
    } catch (InvalidSamplingException e) {
      throw new InvalidRequestException(e.option(), String.valueOf(e.getMessage()), e);
    }
    int[] biased = parameters.biasTokens();
    if (biased.length > 0 && biased[biased.length - 1] >= vocabularySize) {
      throw new InvalidRequestException(
          "logitBias",
          "logitBias names token id %d; this model's ids are below %d"
              .formatted(biased[biased.length - 1], vocabularySize));
    }
    return parameters;
  }

  private static boolean isGreedy(SamplingOptions options) {
    return (options.temperature() != null && options.temperature() == 0)
        || (options.topK() != null && options.topK() == 1);
  }

  /** The step between the application's defaults and the checkpoint's. */
  static SamplingOptions profile(boolean thinking) {
    return thinking ? THINKING : NON_THINKING;
  }
}
