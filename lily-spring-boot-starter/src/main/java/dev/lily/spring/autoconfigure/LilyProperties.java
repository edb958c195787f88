package dev.lily.spring.autoconfigure;

import dev.lily.engine.generation.SpeculationOptions;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;
import org.springframework.util.unit.DataSize;

/**
 * Properties of Lily. {@link PropertyMapper} validates them and turns them into options.
 *
 * @param model Directory of the checkpoint, with config.json and the safetensors files. Required. A
 *     leading ~/ is the home directory.
 * @param backend Back end that computes: auto takes the best available one, or name one (cpu,
 *     metal).
 * @param kvCache What keys and values are kept as: bf16, or on the CPU also int8 (half the memory,
 *     a little less exact) or fp32 (twice the memory, exact).
 * @param contextLength Most tokens of one conversation, prompt and answer together. By default the
 *     model's own limit, at most 32768, or less if memory does not allow it.
 * @param maxSessions Requests served at the same time. More wait in the queue.
 * @param queueLimit Most requests waiting. Further ones are refused at once.
 * @param queueTimeout A request that waits for its turn for this long is refused. By default it
 *     waits.
 * @param prefillChunk Most prompt tokens computed in one pass. Cancellation waits at most that
 *     long.
 * @param maxStepTime How long running streams may pause for a slice of another request's prompt.
 *     Slices are made as short as it takes, but not shorter than a few tokens.
 * @param memoryLimit Most memory for weights, states and scratch. By default what the device
 *     allows.
 * @param stallTimeout A stream whose consumer takes nothing for this long is ended with an error.
 * @param shutdownGrace How long running answers may go on when the application stops. Keep it below
 *     spring.lifecycle.timeout-per-shutdown-phase.
 * @param cache The prefix cache.
 * @param speculation Drafting tokens and verifying several in one pass.
 * @param cpu The CPU back end.
 * @param metal The Metal back end.
 * @param chat Defaults of chat requests.
 */
@ConfigurationProperties(LilyProperties.PREFIX)
public record LilyProperties(
    @Nullable String model,
    @DefaultValue("auto") String backend,
    @DefaultValue("bf16") String kvCache,
    @Nullable Integer contextLength,
    @DefaultValue("8") int maxSessions,
    @DefaultValue("64") int queueLimit,
    @Nullable Duration queueTimeout,
    @DefaultValue("256") int prefillChunk,
    @DefaultValue("250ms") Duration maxStepTime,
    @Nullable DataSize memoryLimit,
    @DefaultValue("60s") Duration stallTimeout,
    @DefaultValue("20s") Duration shutdownGrace,
    @DefaultValue Cache cache,
    @DefaultValue Speculation speculation,
    @DefaultValue Cpu cpu,
    @DefaultValue Metal metal,
    @DefaultValue Chat chat) {

  static final String PREFIX = "lily";

  /**
   * The prefix cache: what was read of earlier prompts, so that prompts that begin alike are not
   * read again.
   *
   * @param bytes Most memory of the prefix cache. 0 turns it off. By default a quarter of what
   *     weights and scratch leave, at most about four snapshots for each session.
   * @param snapshotInterval Prompt tokens after which the state is kept wherever they are, beside
   *     the beginnings of messages. 0 for none.
   * @param pin Whether system prompts stay in the cache longer than anything else.
   * @param dir Directory in which the cache keeps states of prompts on disk, so that they are found
   *     again after they left memory and after a restart. Holds what users wrote. Off by default. A
   *     leading ~/ is the home directory.
   * @param diskBytes Most bytes of the files in it.
   */
  public record Cache(
      @Nullable DataSize bytes,
      @DefaultValue("2048") int snapshotInterval,
      @DefaultValue("false") boolean pin,
      @Nullable String dir,
      @DefaultValue("16GB") DataSize diskBytes) {}

  /**
   * Speculation: tokens that probably come next are verified several in one pass. It changes no
   * answer.
   *
   * @param mode Where drafts come from: off (there are none) or prompt-lookup (what followed when
   *     the last tokens occurred before, in the prompt or the answer).
   * @param draftTokens Most tokens drafted for one pass of a session, 1 to 64.
   */
  public record Speculation(
      @DefaultValue("off") SpeculationOptions.Mode mode, @DefaultValue("8") int draftTokens) {}

  /**
   * The CPU back end.
   *
   * @param threads Compute threads of the CPU back end. 0 takes as many as the machine has cores.
   * @param kernels Kernel family of the CPU back end: auto, vector (fails without the incubator
   *     module jdk.incubator.vector) or scalar.
   * @param weights Where the CPU back end keeps 4-bit weights: mapped (as they are in the
   *     checkpoint), packed (a copy in memory, in the layout of the fast kernels) or auto (packed,
   *     if at most three quarters of the memory go into it).
   */
  public record Cpu(
      @DefaultValue("0") int threads,
      @DefaultValue("auto") String kernels,
      @DefaultValue("auto") String weights) {}

  /**
   * The Metal back end.
   *
   * @param gpuTime How long the GPU may work on one piece of a prefill. The screen waits as long,
   *     and the system ends what takes much longer.
   * @param tensorOperations Whether prefill goes through the GPU's tensor operations: auto (where
   *     it has hardware for them), always (wherever they compile) or never.
   */
  public record Metal(
      @DefaultValue("100ms") Duration gpuTime, @DefaultValue("auto") String tensorOperations) {}

  /**
   * Defaults of chat requests. What is unset falls to the profile of the mode, then to the
   * checkpoint's generation_config.json.
   *
   * @param temperature Sampling temperature. 0 always takes the likeliest token.
   * @param topP Keeps the smallest set of likeliest tokens whose probability reaches this, 0 to 1.
   * @param topK Keeps this many likeliest tokens. 0 turns it off.
   * @param minP Drops tokens less likely than this share of the likeliest one, 0 to 1.
   * @param presencePenalty Subtracted from the logit of each token already generated, -2 to 2.
   * @param frequencyPenalty Subtracted for each time a token was already generated, -2 to 2.
   * @param repetitionPenalty Weakens tokens of the prompt and the answer so far, above 0 to 10. 1
   *     turns it off.
   * @param maxTokens Most tokens of an answer, reasoning included. By default what the context
   *     leaves.
   * @param minTokens The answer does not end before this many tokens.
   * @param seed Makes answers repeatable on one back end.
   * @param stop Texts before which the answer ends, at most 16.
   * @param thinking Whether the model reasons before it answers. By default it does.
   * @param preserveThinking Whether the reasoning of earlier turns stays in the prompt.
   * @param timeout Most time for one answer, from submission to its end. By default unlimited.
   */
  public record Chat(
      @Nullable Double temperature,
      @Nullable Double topP,
      @Nullable Integer topK,
      @Nullable Double minP,
      @Nullable Double presencePenalty,
      @Nullable Double frequencyPenalty,
      @Nullable Double repetitionPenalty,
      @Nullable Integer maxTokens,
      @Nullable Integer minTokens,
      @Nullable Long seed,
      @Nullable List<String> stop,
      @Nullable Boolean thinking,
      @Nullable Boolean preserveThinking,
      @Nullable Duration timeout) {}
}
