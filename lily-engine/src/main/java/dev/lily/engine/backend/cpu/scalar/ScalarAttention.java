package dev.lily.engine.backend.cpu.scalar;

import dev.lily.engine.backend.cpu.kernel.AttentionKernels;
import dev.lily.engine.backend.cpu.kernel.AttentionSpan;
import dev.lily.engine.backend.cpu.kernel.KeyValuePages;
import java.util.Arrays;

/** One position at a time: its key or value is read once for all query heads. */
final class ScalarAttention implements AttentionKernels {
  @Override
  public void attend(KeyValuePages pages, AttentionSpan span, float[] partial, int offset) {
    int headDim = pages.headDim();
    scores(pages, span);
    for (int h = 0; h < span.numHeads(); h++) {
      int at = offset + h * (headDim + PARTIAL_EXTRA);
      Arrays.fill(partial, at, at + headDim, 0);
      softmax(span, h, partial, at + headDim);
    }
    for (int t = span.from(); t < span.to(); t++) {
      addValue(pages, span, t, partial, offset);
    }
  }

  private static void scores(KeyValuePages pages, AttentionSpan span) {
    float[] key = span.row();
    for (int t = span.from(); t < span.to(); t++) {
      int page = span.pages().page(t / pages.pageTokens());
      pages.key(page, span.layer(), span.keyValueHead(), t % pages.pageTokens(), key);
      for (int h = 0; h < span.numHeads(); h++) {
        int query = span.queryOffset() + h * pages.headDim();
        float sum = 0;
        for (int d = 0; d < pages.headDim(); d++) {
          sum = Math.fma(span.query()[query + d], key[d], sum);
        }
        span.scores()[h * span.scoreStride() + t - span.from()] = sum * span.scale();
      }
    }
  }

  /** Replaces a head's scores by {@code exp(s - max)}; leaves max and their sum. */
  private static void softmax(AttentionSpan span, int head, float[] result, int at) {
    float[] scores = span.scores();
    int first = head * span.scoreStride();
    int end = first + span.to() - span.from();
    float max = Float.NEGATIVE_INFINITY;
    for (int i = first; i < end; i++) {
      max = Math.max(max, scores[i]);
    }
    float sum = 0;
    for (int i = first; i < end; i++) {
      scores[i] = (float) Math.exp(scores[i] - max);
      sum += scores[i];
    }
    result[at] = max;
    result[at + 1] = sum;
  }

  private static void addValue(
      KeyValuePages pages, AttentionSpan span, int token, float[] sums, int offset) {
    float[] value = span.row();
    int page = span.pages().page(token / pages.pageTokens());
    pages.value(page, span.layer(), span.keyValueHead(), token % pages.pageTokens(), value);
    for (int h = 0; h < span.numHeads(); h++) {
      float p = span.scores()[h * span.scoreStride() + token - span.from()];
      int at = offset + h * (pages.headDim() + PARTIAL_EXTRA);
      for (int d = 0; d < pages.headDim(); d++) {
        sums[at + d] = Math.fma(p, value[d], sums[at + d]);
      }
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
