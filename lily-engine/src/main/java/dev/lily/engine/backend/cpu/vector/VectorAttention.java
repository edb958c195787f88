package dev.lily.engine.backend.cpu.vector;

import static dev.lily.engine.backend.cpu.vector.Lanes.FLOATS;
import static dev.lily.engine.backend.cpu.vector.Lanes.LANES;

import dev.lily.engine.backend.cpu.kernel.AttentionKernels;
import dev.lily.engine.backend.cpu.kernel.AttentionSpan;
import dev.lily.engine.backend.cpu.kernel.KeyValuePages;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import jdk.incubator.vector.FloatVector;

/**
 * Attention with lanes over tokens for scores and over dimensions for the weighted sum, so that no
 * sum runs across lanes. The query heads of a KV head go together, four or two at a time, over each
 * page.
 */
final class VectorAttention implements AttentionKernels {
  private final AttentionLoops fp32 = new Fp32AttentionLoops();
  private final AttentionLoops bf16 = new Bf16AttentionLoops();
  private final AttentionLoops int8 = new Int8AttentionLoops();

  private AttentionLoops loops(KeyValuePages pages) {
    return switch (pages.type()) {
      case FP32 -> fp32;
      case BF16 -> bf16;
      case INT8 -> int8;
    };
  }

  @Override
  public void attend(KeyValuePages pages, AttentionSpan span, float[] partial, int offset) {
    AttentionLoops loops = loops(pages);
    int headDim = pages.headDim();
    int size = headDim + PARTIAL_EXTRA;
    scores(loops, pages, span);
    for (int h = 0; h < span.numHeads(); h++) {
      int at = offset + h * size;
      Arrays.fill(partial, at, at + headDim, 0);
      softmax(span, h, partial, at + headDim);
    }
    for (int from = span.from(); from < span.to(); from += pages.pageTokens()) {
      addValues(loops, pages, span, from, partial, offset);
    }
  }

  /** Scores of every head; the tokens that pad a page get garbage, which the next page replaces. */
  private static void scores(AttentionLoops loops, KeyValuePages pages, AttentionSpan span) {
    int heads = span.numHeads();
    int headDim = pages.headDim();
    int stride = span.scoreStride();
    for (int from = span.from(); from < span.to(); from += pages.pageTokens()) {
      MemorySegment page = pages.segment(span.pages().page(from / pages.pageTokens()));
      int at = from - span.from();
      int tokens = Math.min(pages.pageTokens(), span.to() - from);
      for (int t = 0; t < tokens; t = next(t, loops.apart())) {
        for (int h = 0; h < heads; ) {
          int query = span.queryOffset() + h * headDim;
          int score = h * stride + at + t;
          if (heads - h >= 4) {
            loops.scores4(pages, page, t, span, query, score);
            h += 4;
          } else {
            int next = heads - h >= 2 ? 1 : 0;
            loops.scores2(
                pages, page, t, span, query, query + next * headDim, score, score + next * stride);
            h += 2;
          }
        }
      }
    }
  }

  /** The next element that begins a pair of vectors, if the two lie {@code apart}. */
  private static int next(int i, int apart) {
    int next = i + LANES;
    return next % apart == 0 ? next + apart : next;
  }

  /** Replaces a head's scores by {@code exp(s - max)}; leaves max and their sum. */
  private static void softmax(AttentionSpan span, int head, float[] result, int at) {
    float[] scores = span.scores();
    int first = head * span.scoreStride();
    int tokens = span.to() - span.from();
    int end = first + (tokens + LANES - 1) / LANES * LANES;
    Arrays.fill(scores, first + tokens, end, Float.NEGATIVE_INFINITY);
    int count = end - first;
    float max = VectorMath.max(scores, first, count);
    VectorMath.exp(scores, first, 1, max, scores, first, count);
    // The slack of a row of scores has room for a vector.
    VectorMath.sums(scores, first, count, scores, end);
    result[at] = max;
    result[at + 1] = Lanes.sum(scores, end);
  }

  private static void addValues(
      AttentionLoops loops,
      KeyValuePages pages,
      AttentionSpan span,
      int from,
      float[] partial,
      int offset) {
    int heads = span.numHeads();
    int headDim = pages.headDim();
    int stride = span.scoreStride();
    int size = headDim + PARTIAL_EXTRA;
    MemorySegment page = pages.segment(span.pages().page(from / pages.pageTokens()));
    int at = from - span.from();
    int tokens = Math.min(pages.pageTokens(), span.to() - from);
    int whole = headDim / (2 * loops.apart()) * (2 * loops.apart());
    loops.weigh(pages, page, tokens, span, at);
    for (int h = 0; h < heads; ) {
      int p = h * stride + at;
      int sums = offset + h * size;
      boolean four = heads - h >= 4;
      int next = heads - h >= 2 ? 1 : 0;
      for (int d = 0; d < whole; d = next(d, loops.apart())) {
        if (four) {
          loops.values4(pages, page, d, tokens, span, p, partial, sums + d, size);
        } else {
          loops.values2(
              pages,
              page,
              d,
              tokens,
              span,
              p,
              p + next * stride,
              partial,
              sums + d,
              sums + next * size + d);
        }
      }
      h += four ? 4 : 2;
    }
    for (int h = 0; whole < headDim && h < heads; h++) {
      loops.valuesTail(
          pages, page, whole, tokens, span, h * stride + at, partial, offset + h * size);
    }
  }

  @Override
  public void merge(
      float[] partial, int offset, float[] next, int nextOffset, int numHeads, int headDim) {
    int a = offset;
    int b = nextOffset;
    for (int h = 0; h < numHeads; h++, a += headDim + PARTIAL_EXTRA, b += headDim + PARTIAL_EXTRA) {
      float max = Math.max(partial[a + headDim], next[b + headDim]);
      float keep = (float) Math.exp(partial[a + headDim] - max);
      float add = (float) Math.exp(next[b + headDim] - max);
      FloatVector factor = FloatVector.broadcast(FLOATS, add);
      int d = 0;
      for (; d <= headDim - LANES; d += LANES) {
        FloatVector.fromArray(FLOATS, next, b + d)
            .fma(factor, FloatVector.fromArray(FLOATS, partial, a + d).mul(keep))
            .intoArray(partial, a + d);
      }
      for (; d < headDim; d++) {
        partial[a + d] = Math.fma(next[b + d], add, partial[a + d] * keep);
      }
      partial[a + headDim + 1] =
          Math.fma(next[b + headDim + 1], add, partial[a + headDim + 1] * keep);
      partial[a + headDim] = max;
    }
  }

  @Override
  public void finish(
      float[] partial,
      int offset,
      int numHeads,
      int headDim,
      float[] gate,
      float[] y,
      int rowOffset) {
    for (int h = 0; h < numHeads; h++) {
      int at = offset + h * (headDim + PARTIAL_EXTRA);
      int out = rowOffset + h * headDim;
      float sum = partial[at + headDim + 1];
      VectorMath.exp(gate, out, -1, 0, y, out, headDim);
      int d = 0;
      for (; d <= headDim - LANES; d += LANES) {
        FloatVector.fromArray(FLOATS, partial, at + d)
            .div(sum)
            .div(FloatVector.fromArray(FLOATS, y, out + d).add(1))
            .intoArray(y, out + d);
      }
      for (; d < headDim; d++) {
        y[out + d] = partial[at + d] / sum / (y[out + d] + 1);
      }
    }
  }
}
