package dev.lily.engine.backend.cpu;

import dev.lily.engine.backend.AttentionOperands;
import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.ModelShape;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.StateLayout;
import dev.lily.engine.backend.cpu.kernel.AttentionKernels;
import dev.lily.engine.backend.cpu.kernel.AttentionSpan;
import dev.lily.engine.backend.cpu.kernel.CpuTensor;
import dev.lily.engine.backend.cpu.kernel.KeyValuePages;
import dev.lily.engine.backend.cpu.kernel.WorkerPool;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Causal attention. A row's positions are always cut into the same spans, computed alone and merged
 * in order, so that its result depends neither on the rows beside it nor on the threads. Many rows
 * are shared out in tiles that go through the spans together; few rows with a long context are
 * shared out span by span.
 */
final class AttendStep {
  private static final int SPAN_TOKENS = 512;
  private static final int TILE_ROWS = 8;
  private static final int SPLIT_ROWS = 4;

  private final Compute compute;
  private final KeyValuePages pages;
  private final AttentionSpan[] spans;
  private final float[][] running;
  private final float[][] next;
  private final float[] splitPartials;
  private final int[] tileRow;
  private final int[] tileRows;
  private final int spanTokens;
  private final int maxPositions;
  private final Tiles tiles = new Tiles();
  private final Split split = new Split();
  private final Merge merge = new Merge();
  private @Nullable AttentionOperands operands;
  private @Nullable RowPlan plan;
  private int numTiles;

  AttendStep(Compute compute, KeyValuePages pages, ModelShape shape, PassLimits limits) {
    this.compute = compute;
    this.pages = pages;
    int heads = shape.numAttentionHeads();
    spanTokens = spanTokens(pages.pageTokens());
    maxPositions = limits.maxPositions();
    int workers = compute.pool().numWorkers();
    spans = new AttentionSpan[workers];
    running = new float[workers][];
    next = new float[workers][];
    long partial = heads * partialElements(shape.headDim());
    int scores = spanTokens + KeyValuePages.TOKEN_UNIT;
    for (int w = 0; w < workers; w++) {
      spans[w] = new AttentionSpan(heads, scores, shape.headDim());
      running[w] = Compute.scratch(TILE_ROWS * partial);
      next[w] = Compute.scratch(partial);
    }
    splitPartials =
        Compute.scratch(SPLIT_ROWS * numSpans(limits.maxPositions(), spanTokens) * partial);
    tileRow = new int[limits.maxRows()];
    tileRows = new int[limits.maxRows()];
  }

  /** Positions of a span: whole pages. */
  private static int spanTokens(int pageTokens) {
    return Math.max(1, SPAN_TOKENS / pageTokens) * pageTokens;
  }

  /** fp32 elements of scratch, apart from what each thread has. */
  static long sharedElements(StateLayout layout, ModelShape shape, PassLimits limits) {
    long spans = numSpans(limits.maxPositions(), spanTokens(layout.pageTokens()));
    return SPLIT_ROWS * spans * shape.numAttentionHeads() * partialElements(shape.headDim());
  }

  /** fp32 elements of scratch that each thread has. */
  static long elementsPerWorker(ModelShape shape) {
    long partial = shape.numAttentionHeads() * partialElements(shape.headDim());
    long scores = (long) shape.numAttentionHeads() * (SPAN_TOKENS + KeyValuePages.TOKEN_UNIT);
    return (TILE_ROWS + 1) * partial + scores + shape.headDim();
  }

  private static long numSpans(long positions, int spanTokens) {
    return (positions + spanTokens - 1) / spanTokens;
  }

  private static long partialElements(int headDim) {
    return (long) headDim + AttentionKernels.PARTIAL_EXTRA;
  }

  void run(AttentionOperands operands, RowPlan plan) {
    this.operands = operands;
    this.plan = plan;
    int keyValueHeads = operands.numKeyValueHeads();
    int longest = 0;
    numTiles = 0;
    for (int s = 0; s < plan.numSequences(); s++) {
      int rows = plan.numRows(s);
      longest = Math.max(longest, plan.position(s) + rows);
      for (int r = 0; r < rows; r += TILE_ROWS) {
        tileRow[numTiles] = plan.firstRow(s) + r;
        tileRows[numTiles++] = Math.min(TILE_ROWS, rows - r);
      }
    }
    if (longest > maxPositions) {
      throw new BackendException(
          "A sequence of %d tokens exceeds the %d that the state was opened for"
              .formatted(longest, maxPositions));
    }
    int numSpans = Compute.ceilDiv(longest, spanTokens);
    if (plan.numRows() <= SPLIT_ROWS && numSpans > 1) {
      split.numSpans = numSpans;
      compute.pool().run(split, plan.numRows() * keyValueHeads * numSpans);
      compute.pool().run(merge, plan.numRows() * keyValueHeads);
    } else {
      compute.pool().run(tiles, numTiles * keyValueHeads);
    }
  }

  private int group() {
    AttentionOperands now = Objects.requireNonNull(operands);
    return now.numHeads() / now.numKeyValueHeads();
  }

  private int partialSize() {
    return group() * (pages.headDim() + AttentionKernels.PARTIAL_EXTRA);
  }

  /** Attends from a row to one span; false if the span lies after the row. */
  private boolean attend(
      int worker, int row, int keyValueHead, int span, float[] partial, int offset) {
    AttentionOperands now = Objects.requireNonNull(operands);
    RowPlan rows = Objects.requireNonNull(plan);
    int from = span * spanTokens;
    int end = rows.positionOf(row) + 1;
    if (from >= end) {
      return false;
    }
    AttentionSpan work = spans[worker];
    float scale = (float) (1 / Math.sqrt(pages.headDim()));
    work.heads(now.layer(), keyValueHead, group(), scale);
    int query = (row * now.numHeads() + keyValueHead * group()) * pages.headDim();
    work.row(rows.pages(rows.sequenceOf(row)), CpuTensor.values(now.query()), query);
    work.positions(from, Math.min(end, from + spanTokens));
    compute.kernels().attention().attend(pages, work, partial, offset);
    return true;
  }

  private void merge(float[] partial, int offset, float[] following, int followingOffset) {
    compute
        .kernels()
        .attention()
        .merge(partial, offset, following, followingOffset, group(), pages.headDim());
  }

  private void finish(int row, int keyValueHead, float[] partial, int offset) {
    AttentionOperands now = Objects.requireNonNull(operands);
    compute
        .kernels()
        .attention()
        .finish(
            partial,
            offset,
            group(),
            pages.headDim(),
            CpuTensor.values(now.gate()),
            CpuTensor.values(now.y()),
            (row * now.numHeads() + keyValueHead * group()) * pages.headDim());
  }

  /** Parts are (tile of rows, KV head). */
  private final class Tiles implements WorkerPool.Task {
    @Override
    public void run(int part, int worker) {
      int tile = part % numTiles;
      int head = part / numTiles;
      int rows = tileRows[tile];
      boolean more = true;
      for (int span = 0; more; span++) {
        more = false;
        for (int r = 0; r < rows; r++) {
          more |= addSpan(worker, tileRow[tile] + r, head, span, r * partialSize());
        }
      }
      for (int r = 0; r < rows; r++) {
        finish(tileRow[tile] + r, head, running[worker], r * partialSize());
      }
    }

    private boolean addSpan(int worker, int row, int head, int span, int offset) {
      if (span == 0) {
        return attend(worker, row, head, 0, running[worker], offset);
      }
      if (!attend(worker, row, head, span, next[worker], 0)) {
        return false;
      }
      merge(running[worker], offset, next[worker], 0);
      return true;
    }
  }

  /** Parts are (row, KV head, span). */
  private final class Split implements WorkerPool.Task {
    private int numSpans;

    @Override
    public void run(int part, int worker) {
      int unit = part / numSpans;
      int heads = Objects.requireNonNull(operands).numKeyValueHeads();
      attend(
          worker, unit / heads, unit % heads, part % numSpans, splitPartials, part * partialSize());
    }
  }

  /** Parts are (row, KV head). */
  private final class Merge implements WorkerPool.Task {
    @Override
    public void run(int part, int worker) {
      int heads = Objects.requireNonNull(operands).numKeyValueHeads();
      int row = part / heads;
      int first = part * split.numSpans * partialSize();
      int end = Objects.requireNonNull(plan).positionOf(row) + 1;
      for (int span = 1; span * spanTokens < end; span++) {
        merge(splitPartials, first, splitPartials, first + span * partialSize());
      }
      finish(row, part % heads, splitPartials, first);
    }
  }
}
