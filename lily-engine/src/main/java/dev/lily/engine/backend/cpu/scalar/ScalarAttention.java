package dev.lily.engine.backend.cpu.scalar;

import dev.lily.engine.backend.cpu.kernel.AttentionKernels;
import dev.lily.engine.backend.cpu.kernel.AttentionSpan;
import dev.lily.engine.backend.cpu.kernel.KeyValuePages;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;

/** One query head and one position at a time. */
final class ScalarAttention implements AttentionKernels {
  @Override
  public void attend(KeyValuePages pages, AttentionSpan span, float[] partial, int offset) {
    int headDim = pages.headDim();
    int at = offset;
    for (int h = 0; h < span.numHeads(); h++, at += headDim + PARTIAL_EXTRA) {
      int scores = h * span.scoreStride();
      float max = scores(pages, span, h, scores);
      Arrays.fill(partial, at, at + headDim, 0);
      float sum = 0;
      for (int t = span.from(); t < span.to(); t++) {
        float p = (float) Math.exp(span.scores()[scores + t - span.from()] - max);
        sum += p;
        addValue(pages, span, t, p, partial, at);
      }
      partial[at + headDim] = max;
      partial[at + headDim + 1] = sum;
    }
  }

  /** Fills the scores of one head; returns the largest. */
  private static float scores(KeyValuePages pages, AttentionSpan span, int head, int scores) {
    int query = span.queryOffset() + head * pages.headDim();
    long stride = (long) pages.tokenStride() * Float.BYTES;
    float max = Float.NEGATIVE_INFINITY;
    for (int t = span.from(); t < span.to(); t++) {
      int page = span.pages().page(t / pages.pageTokens());
      long at =
          pages.keys(span.layer(), span.keyValueHead())
              + (long) (t % pages.pageTokens()) * Float.BYTES;
      MemorySegment segment = pages.segment(page);
      float sum = 0;
      for (int d = 0; d < pages.headDim(); d++, at += stride) {
        sum = Math.fma(span.query()[query + d], segment.get(ValueLayout.JAVA_FLOAT, at), sum);
      }
      float score = sum * span.scale();
      span.scores()[scores + t - span.from()] = score;
      max = Math.max(max, score);
    }
    return max;
  }

  private static void addValue(
      KeyValuePages pages, AttentionSpan span, int token, float p, float[] sums, int offset) {
    MemorySegment segment = pages.segment(span.pages().page(token / pages.pageTokens()));
    long at =
        pages.values(span.layer(), span.keyValueHead())
            + (long) (token % pages.pageTokens()) * pages.headDim() * Float.BYTES;
    for (int d = 0; d < pages.headDim(); d++, at += Float.BYTES) {
      sums[offset + d] = Math.fma(p, segment.get(ValueLayout.JAVA_FLOAT, at), sums[offset + d]);
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
      for (int d = 0; d < headDim; d++) {
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
    int at = offset;
    int out = rowOffset;
    for (int h = 0; h < numHeads; h++, at += headDim + PARTIAL_EXTRA, out += headDim) {
      float sum = partial[at + headDim + 1];
      for (int d = 0; d < headDim; d++) {
        y[out + d] = partial[at + d] / sum * ScalarKernels.sigmoid(gate[out + d]);
      }
    }
  }
}
