package dev.lily.engine;

import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.KeyValueType;
import dev.lily.engine.generation.SchedulerOptions;
import dev.lily.engine.generation.SpeculationOptions;
import dev.lily.engine.sampling.SamplingOptions;
import java.nio.file.Path;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * How to open a model.
 *
 * @param model the checkpoint directory
 * @param backend a back end's id, or {@code auto} for the best available one
 * @param backendOptions what the user says about the device
 * @param kvCache what keys and values are kept as
 * @param contextLength most tokens of one conversation, prompt and answer together; {@code null}
 *     takes the smaller of the model's own limit and what {@code memoryLimitBytes} allows
 * @param maxSessions requests served at the same time; more wait in the queue
 * @param queueLimit most requests waiting
 * @param prefillChunk most prompt tokens of one pass; cancellation waits at most that long
 * @param maxStepTime how long a pass in which sessions write may take because of prompts that are
 *     read beside them: the longest pause of a stream; a slice of a prompt is made as short as it
 *     takes, but not shorter than a few tokens
 * @param memoryLimitBytes most bytes for weights, states and scratch; {@code null} takes the
 *     device's budget
 * @param cacheBytes most bytes of the prefix cache; 0 turns it off, {@code null} leaves the size to
 *     the memory plan
 * @param snapshotInterval prompt tokens after which the prefix cache keeps the state wherever they
 *     are; 0 for message boundaries alone
 * @param pinSystemPrompt whether what the prefix cache keeps of first messages leaves it last
 * @param cacheDirectory where the prefix cache keeps on disk what does not fit into memory or is to
 *     outlive the process: the states of users' prompts; {@code null} for nowhere
 * @param cacheDiskBytes most bytes of the files there
 * @param defaults sampling defaults, between the request's and the profile of its mode
 * @param stallTimeout a session whose consumer takes nothing for this long is ended
 * @param queueTimeout a request that waits for its turn for this long is refused; {@code null} lets
 *     it wait
 * @param speculation whether tokens are drafted and verified several at a time
 */
public record EngineOptions(
    Path model,
    String backend,
    BackendOptions backendOptions,
    KeyValueType kvCache,
    @Nullable Integer contextLength,
    int maxSessions,
    int queueLimit,
    int prefillChunk,
    Duration maxStepTime,
    @Nullable Long memoryLimitBytes,
    @Nullable Long cacheBytes,
    int snapshotInterval,
    boolean pinSystemPrompt,
    @Nullable Path cacheDirectory,
    long cacheDiskBytes,
    SamplingOptions defaults,
    Duration stallTimeout,
    @Nullable Duration queueTimeout,
    SpeculationOptions speculation) {

  /** 16 GiB: at 63 MiB and 20 KiB a token, about 160 snapshots of a chat of the 35B. */
  public static final long DEFAULT_CACHE_DISK_BYTES = 16L << 30;

  public EngineOptions {
    positive("contextLength", contextLength == null ? 1 : contextLength);
    positive("maxSessions", maxSessions);
    positive("prefillChunk", prefillChunk);
    notNegative("queueLimit", queueLimit);
    notNegative("cacheBytes", cacheBytes == null ? 0 : cacheBytes);
    notNegative("snapshotInterval", snapshotInterval);
    notNegative("cacheDiskBytes", cacheDiskBytes);
    positive("maxStepTime", maxStepTime);
    positive("stallTimeout", stallTimeout);
    if (queueTimeout != null) {
      positive("queueTimeout", queueTimeout);
    }
  }

  private static void positive(String name, Duration value) {
    if (!value.isPositive()) {
      throw new IllegalArgumentException(name + " is " + value + "; it must be positive");
    }
  }

  private static void positive(String name, int value) {
    if (value < 1) {
      throw new IllegalArgumentException(name + " is " + value + "; it must be at least 1");
    }
  }

  private static void notNegative(String name, long value) {
    if (value < 0) {
      throw new IllegalArgumentException(name + " is " + value + "; it must not be negative");
    }
  }

  /** Defaults for everything but the model directory. */
  public static Builder builder(Path model) {
    return new Builder(model);
  }

  /** Collects options field by field. */
  public static final class Builder {
    private final Path model;
    private String backend = "auto";
    private BackendOptions backendOptions = BackendOptions.DEFAULT;
    private KeyValueType kvCache = KeyValueType.BF16;
    private @Nullable Integer contextLength;
    private int maxSessions = 8;
    private int queueLimit = 64;
    private int prefillChunk = 256;
    private Duration maxStepTime = SchedulerOptions.DEFAULT_MAX_STEP_TIME;
    private @Nullable Long memoryLimitBytes;
    private @Nullable Long cacheBytes;
    private int snapshotInterval = 2048;
    private boolean pinSystemPrompt;
    private @Nullable Path cacheDirectory;
    private long cacheDiskBytes = DEFAULT_CACHE_DISK_BYTES;
    private SamplingOptions defaults = SamplingOptions.NONE;
    private Duration stallTimeout = Duration.ofSeconds(60);
    private @Nullable Duration queueTimeout;
    private SpeculationOptions speculation = SpeculationOptions.OFF;

    private Builder(Path model) {
      this.model = model;
    }

    public Builder backend(String value) {
      backend = value;
      return this;
    }

    public Builder backendOptions(BackendOptions value) {
      backendOptions = value;
      return this;
    }

    public Builder kvCache(KeyValueType value) {
      kvCache = value;
      return this;
    }

    public Builder contextLength(@Nullable Integer value) {
      contextLength = value;
      return this;
    }

    public Builder maxSessions(int value) {
      maxSessions = value;
      return this;
    }

    public Builder queueLimit(int value) {
      queueLimit = value;
      return this;
    }

    public Builder prefillChunk(int value) {
      prefillChunk = value;
      return this;
    }

    public Builder maxStepTime(Duration value) {
      maxStepTime = value;
      return this;
    }

    public Builder memoryLimitBytes(@Nullable Long value) {
      memoryLimitBytes = value;
      return this;
    }

    public Builder cacheBytes(@Nullable Long value) {
      cacheBytes = value;
      return this;
    }

    public Builder snapshotInterval(int value) {
      snapshotInterval = value;
      return this;
    }

    public Builder pinSystemPrompt(boolean value) {
      pinSystemPrompt = value;
      return this;
    }

    public Builder cacheDirectory(@Nullable Path value) {
      cacheDirectory = value;
      return this;
    }

    public Builder cacheDiskBytes(long value) {
      cacheDiskBytes = value;
      return this;
    }

    public Builder defaults(SamplingOptions value) {
      defaults = value;
      return this;
    }

    public Builder stallTimeout(Duration value) {
      stallTimeout = value;
      return this;
    }

    public Builder queueTimeout(@Nullable Duration value) {
      queueTimeout = value;
      return this;
    }

    public Builder speculation(SpeculationOptions value) {
      speculation = value;
      return this;
    }

    public EngineOptions build() {
      return new EngineOptions(
          model,
          backend,
          backendOptions,
          kvCache,
          contextLength,
          maxSessions,
          queueLimit,
          prefillChunk,
          maxStepTime,
          memoryLimitBytes,
          cacheBytes,
          snapshotInterval,
          pinSystemPrompt,
          cacheDirectory,
          cacheDiskBytes,
          defaults,
          stallTimeout,
          queueTimeout,
          speculation);
    }
  }
}
