package dev.lily.engine.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.List;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

class GapsTest {
  private static final long MS = 1_000_000;

  private static long[] at(long... millis) {
    return LongStream.of(millis).map(ms -> ms * MS).toArray();
  }

  @Test
  void takesTheGapsThatEndInTheSpan() {
    // Of the first stream 20 (10 to 30) and 40, of the second 25 and 15.
    Gaps gaps = Gaps.of(List.of(at(10, 30, 70, 200), at(40, 65, 80)), 20 * MS, 80 * MS);
    assertThat(gaps.sorted()).containsExactly(at(15, 20, 25, 40));
    assertThat(gaps.tokens()).isEqualTo(5);
    assertThat(gaps.tokensPerSecond()).isCloseTo(5 / 0.06, within(1e-9));
  }

  @Test
  void givesTheSmallestGapThatEnoughDoNotExceed() {
    long[] times = new long[101];
    for (int i = 1; i <= 100; i++) {
      times[i] = times[i - 1] + i * MS;
    }
    Gaps gaps = Gaps.of(List.of(times), -1, Long.MAX_VALUE);
    assertThat(gaps.percentile(50)).isEqualTo(50);
    assertThat(gaps.percentile(99)).isEqualTo(99);
    assertThat(gaps.percentile(100)).isEqualTo(100);
  }

  @Test
  void hasNoPercentileWithoutGaps() {
    assertThat(Gaps.of(List.of(at(1)), 0, 2 * MS).percentile(50)).isNaN();
  }
}
