package dev.lily.engine;

import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.StateLayout;
import dev.lily.engine.generation.disk.DiskWorker;
import dev.lily.engine.model.qwen35moe.Qwen35Config;
import dev.lily.engine.model.qwen35moe.Qwen35Moe;
import org.jspecify.annotations.Nullable;

/**
 * Decides how long a conversation may be and how many KV pages there are, from the bytes allowed.
 *
 * <p>Weights, scratch and the sessions' recurrent slots, two each with speculation, are fixed. Of
 * what is left the prefix cache gets what was asked for, or else a quarter, but no more than
 * {@value #SNAPSHOTS_PER_SESSION} snapshots a session are worth and never what one session of a
 * context length that was asked for needs. The rest goes to the page pool, at most a full context
 * for every session; the cache keeps its KV in pages of the pool that no session needs. A context
 * length that was asked for is kept or refused; one that was not is shortened until one session
 * fits.
 */
record MemoryPlanner(
    Qwen35Config config, Backend backend, EngineOptions options, long weightBytes, int vocabulary) {

  /** Tokens per KV page. */
  static final int PAGE_TOKENS = 32;

  /** Longest context taken when the user names none. */
  static final int DEFAULT_CONTEXT_LENGTH = 32_768;

  private static final int MIN_CONTEXT_LENGTH = 512;

  /** Snapshots that the cache has room for when the user names no size. */
  static final int SNAPSHOTS_PER_SESSION = 4;

  /** Tokens of KV that such a snapshot is reckoned to refer to alone. */
  private static final int TOKENS_PER_SNAPSHOT = 1024;

  /** Bookkeeping per snapshot is small but not nothing. */
  private static final int MAX_SNAPSHOTS = 65_536;

  /** A plan with the sizes it stands for. */
  record Sizes(MemoryPlan plan, StateLayout layout, PassLimits limits) {}

  /**
   * Makes the plan.
   *
   * @throws ModelDoesNotFitException with the numbers and the settings to lower
   */
  Sizes plan() {
    int asked = askedContextLength();
    PassLimits limits = limits(asked);
    long buffers = options.cacheDirectory() == null ? 0 : DiskWorker.BUFFER_BYTES;
    long scratch =
        Qwen35Moe.scratchBytes(config, vocabulary, layout(0, 0), limits, backend) + buffers;
    long slots = backend.stateBytes(layout(0, 0));
    long page = backend.stateBytes(layout(1, 0)) - slots;
    long snapshot = backend.stateBytes(layout(0, 1)) - slots;
    long budget =
        options.memoryLimitBytes() != null
            ? options.memoryLimitBytes()
            : backend.device().memoryBudgetBytes();

    long free = budget - weightBytes - scratch - slots;
    long session = Math.ceilDiv(asked, PAGE_TOKENS) * page;
    long cache = cacheBytes(free, session, snapshot, page);
    int snapshots = (int) Math.min(cache / (snapshot + page), MAX_SNAPSHOTS);
    long left = free - snapshots * snapshot;
    long wanted = (long) Math.ceilDiv(asked, PAGE_TOKENS) * options.maxSessions();
    int pages = (int) Math.clamp(left / page, 0, Math.min(wanted, Integer.MAX_VALUE));
    int context = (int) Math.min(asked, (long) pages * PAGE_TOKENS);
    boolean fits =
        options.contextLength() == null
            ? context >= Math.min(asked, MIN_CONTEXT_LENGTH)
            : context == asked;
    MemoryPlan plan =
        new MemoryPlan(
            weightBytes,
            (fits ? pages : Math.ceilDiv(asked, PAGE_TOKENS)) * page,
            page / PAGE_TOKENS,
            slots,
            snapshots * snapshot,
            cache,
            scratch,
            budget,
            fits ? context : asked,
            options.maxSessions());
    if (!fits) {
      throw new ModelDoesNotFitException(refusal(plan), plan);
    }
    return new Sizes(plan, layout(pages, snapshots), limits(context));
  }

  private int askedContextLength() {
    @Nullable Integer asked = options.contextLength();
    int most = config.maxPositionEmbeddings();
    if (asked == null) {
      return Math.min(most, DEFAULT_CONTEXT_LENGTH);
    }
    if (asked > most) {
      throw new IllegalArgumentException(
          "contextLength is %d; the model was trained for at most %d tokens (max_position_embeddings)"
              .formatted(asked, most));
    }
    return asked;
  }

  private PassLimits limits(int contextLength) {
    int sessions = options.maxSessions();
    int rows = sessions * options.speculation().rowsPerSession();
    return new PassLimits(options.prefillChunk() + rows, sessions, rows, contextLength);
  }

  private StateLayout layout(int pages, int snapshots) {
    int sessions = options.maxSessions();
    int slots = sessions + options.speculation().spareSlots(sessions) + snapshots;
    return Qwen35Moe.layout(config, PAGE_TOKENS, pages, slots, sessions, vocabulary)
        .with(options.kvCache());
  }

  private long cacheBytes(long free, long session, long snapshot, long page) {
    @Nullable Long asked = options.cacheBytes();
    long least = snapshot + page;
    if (asked != null) {
      if (asked > 0 && asked < least) {
        throw new IllegalArgumentException(
            "cacheBytes is %d, but one snapshot of this model takes %d. Raise lily.cache.bytes, or set it to 0 to turn the cache off."
                .formatted(asked, least));
      }
      return asked;
    }
    long most =
        (long) SNAPSHOTS_PER_SESSION
            * options.maxSessions()
            * (snapshot + TOKENS_PER_SNAPSHOT / PAGE_TOKENS * page);
    long spare = options.contextLength() == null ? free : free - session;
    long bytes = Math.clamp(Math.min(free / 4, spare), 0, most);
    return bytes < least ? 0 : bytes;
  }

  private String refusal(MemoryPlan plan) {
    return ("The model needs %s (weights %s, %s for one session of %d tokens, states %s, snapshots %s,"
            + " scratch %s), but only %s may be used. Lower lily.context-length, lily.max-sessions"
            + " or lily.cache.bytes, raise lily.memory-limit, or %s.")
        .formatted(
            StartupSummary.bytes(plan.totalBytes()),
            StartupSummary.bytes(plan.weightBytes()),
            StartupSummary.bytes(plan.kvCacheBytes()),
            plan.contextLength(),
            StartupSummary.bytes(plan.stateBytes()),
            StartupSummary.bytes(plan.snapshotBytes()),
            StartupSummary.bytes(plan.scratchBytes()),
            StartupSummary.bytes(plan.budgetBytes()),
            backend.memoryRemedy(plan.totalBytes()));
  }
}
