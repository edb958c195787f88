package dev.lily.engine.generation;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import org.junit.jupiter.api.Test;

class SnapshotPositionsTest {
  private static final int START = 7;

  /** A prompt whose messages begin at the places named. */
  private static int[] prompt(int length, int... starts) {
    int[] prompt = new int[length];
    Arrays.fill(prompt, 1);
    for (int start : starts) {
      prompt[start] = START;
    }
    return prompt;
  }

  private static int[] positions(int interval, int[] prompt) {
    return new SnapshotPositions(START, interval).of(prompt);
  }

  @Test
  void keepsTheEndOfTheFirstMessageAndTheBeginningsOfTheLastFour() {
    assertThat(positions(0, prompt(80, 0, 10, 20, 30, 40, 50, 60, 70)))
        .containsExactly(10, 40, 50, 60, 70);
  }

  @Test
  void keepsTheBeginningOfTheAnswerOfASingleMessage() {
    assertThat(positions(0, prompt(20, 0, 15))).containsExactly(15);
  }

  @Test
  void keepsMultiplesOfTheInterval() {
    assertThat(positions(25, prompt(80, 0, 60))).containsExactly(25, 50, 60, 75);
    assertThat(positions(40, prompt(80, 0, 60))).as("not the end").containsExactly(40, 60);
  }

  @Test
  void keepsThePlaceBeforeTheLastTokenIfNoMessageBeginsNearTheEnd() {
    assertThat(positions(0, prompt(100))).containsExactly(99);
    assertThat(positions(0, prompt(100, 0, 50))).containsExactly(50, 99);
    assertThat(positions(0, prompt(100, 68))).containsExactly(68);
    assertThat(positions(0, prompt(1))).isEmpty();
    assertThat(positions(0, prompt(2, 1))).containsExactly(1);
  }

  @Test
  void knowsNoMessagesWithoutATokenForThem() {
    assertThat(new SnapshotPositions(-1, 0).of(prompt(40, 0, 35))).containsExactly(39);
  }
}
