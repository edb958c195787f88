package dev.lily.engine.bench;

import java.util.Arrays;
import java.util.List;
import java.util.stream.LongStream;

/**
 * Gaps between the tokens of each of several streams, within a span of time.
 *
 * @param sorted nanoseconds, shortest first
 * @param tokens that came in the span
 * @param nanos of the span
 */
record Gaps(long[] sorted, int tokens, long nanos) {

  /** Gaps that end after one time and not after another. */
  static Gaps between(List<TokenTimes> streams, long from, long to) {
    return of(streams.stream().map(TokenTimes::times).toList(), from, to);
  }

  static Gaps of(List<long[]> streams, long from, long to) {
    LongStream.Builder gaps = LongStream.builder();
    int tokens = 0;
    for (long[] times : streams) {
      for (int i = 0; i < times.length; i++) {
        if (times[i] > from && times[i] <= to) {
          tokens++;
          if (i > 0) {
            gaps.add(times[i] - times[i - 1]);
          }
        }
      }
    }
    long[] sorted = gaps.build().toArray();
    Arrays.sort(sorted);
    return new Gaps(sorted, tokens, to - from);
  }

  double tokensPerSecond() {
    return tokens / (nanos * 1e-9);
  }

  /** Milliseconds that so many per cent of the gaps do not exceed. */
  double percentile(int percent) {
    int rank = Math.ceilDiv(percent * sorted.length, 100);
    return sorted.length == 0 ? Double.NaN : sorted[Math.max(0, rank - 1)] * 1e-6;
  }
}
