package dev.lily.engine.generation;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class StopTokensTest {

  @Test
  void masksStopTokensAndIdsBeyondTheVocabularyOnly() {
    long[] mask = new StopTokens(new int[] {0, 64, 500}).maskOfOthers(70);
    assertThat(mask).containsExactly(~1L, 0b111110L);
  }

  @Test
  void knowsItsTokens() {
    int[] ids = {7, 9};
    StopTokens stops = new StopTokens(ids);
    ids[0] = 8;
    assertThat(stops.contains(7)).isTrue();
    assertThat(stops.contains(9)).isTrue();
    assertThat(stops.contains(8)).isFalse();
  }
}
