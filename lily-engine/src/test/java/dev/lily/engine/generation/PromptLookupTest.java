package dev.lily.engine.generation;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class PromptLookupTest {

  private static int[] draft(PromptLookup lookup, int most) {
    int[] target = new int[most + 2];
    int count = lookup.draft(target, 1, most);
    assertThat(target[0]).isZero();
    return Arrays.copyOfRange(target, 1, 1 + count);
  }

  @Test
  void goesOnAsBefore() {
    PromptLookup lookup = new PromptLookup(new int[] {1, 2, 3, 4, 5, 6, 7, 1, 2, 3});
    assertThat(draft(lookup, 3)).containsExactly(4, 5, 6);
    assertThat(draft(lookup, 1)).containsExactly(4);
    lookup.add(4);
    assertThat(draft(lookup, 3)).containsExactly(5, 6, 7);
  }

  @Test
  void findsWhatTheAnswerItselfHasSaid() {
    PromptLookup lookup = new PromptLookup(new int[] {9});
    for (int token : new int[] {1, 2, 3, 4, 1, 2, 3}) {
      lookup.add(token);
    }
    assertThat(draft(lookup, 8)).as("no further than the end").containsExactly(4, 1, 2, 3);
  }

  @Test
  void takesTwoEqualTokensForChance() {
    PromptLookup lookup = new PromptLookup(new int[] {1, 2, 3, 4, 9, 2, 3});
    assertThat(draft(lookup, 8)).isEmpty();
  }

  @Test
  void takesTheLongestMatchAndOfEqualOnesTheLatest() {
    PromptLookup longest =
        new PromptLookup(new int[] {5, 1, 2, 3, 10, 6, 1, 2, 3, 11, 8, 5, 1, 2, 3});
    assertThat(draft(longest, 1)).containsExactly(10);
    PromptLookup latest =
        new PromptLookup(new int[] {5, 1, 2, 3, 10, 6, 1, 2, 3, 11, 8, 7, 1, 2, 3});
    assertThat(draft(latest, 1)).containsExactly(11);
  }

  @Test
  void matchesAtTheVeryBeginning() {
    assertThat(draft(new PromptLookup(new int[] {1, 2, 3, 1, 2, 3}), 8)).containsExactly(1, 2, 3);
    assertThat(draft(new PromptLookup(new int[] {3, 1, 2, 3}), 8)).isEmpty();
  }

  @Test
  void saysNothingOfAlmostNoTokens() {
    for (int length = 1; length <= 3; length++) {
      assertThat(draft(new PromptLookup(new int[length]), 8)).isEmpty();
    }
    assertThat(draft(new PromptLookup(new int[4]), 8)).containsExactly(0);
  }

  @Test
  void looksNoFurtherBackThanItsReach() {
    int[] prompt = IntStream.range(0, PromptLookup.REACH + 10).map(i -> 100 + i).toArray();
    System.arraycopy(new int[] {1, 2, 3, 4}, 0, prompt, 0, 4);
    System.arraycopy(new int[] {1, 2, 3}, 0, prompt, prompt.length - 3, 3);
    assertThat(draft(new PromptLookup(prompt), 8)).isEmpty();
    assertThat(draft(new PromptLookup(Arrays.copyOfRange(prompt, 0, 4)), 8)).isEmpty();
    int[] nearer = Arrays.copyOfRange(prompt, 8, prompt.length);
    System.arraycopy(new int[] {1, 2, 3, 4}, 0, nearer, 0, 4);
    assertThat(draft(new PromptLookup(nearer), 1)).containsExactly(4);
  }

  @Test
  void growsWithTheAnswer() {
    PromptLookup lookup = new PromptLookup(new int[] {7, 8, 9});
    for (int i = 0; i < 1000; i++) {
      lookup.add(100 + i);
    }
    for (int token : new int[] {998, 999, 1000}) {
      lookup.add(token);
    }
    assertThat(draft(lookup, 2)).containsExactly(1001, 1002);
  }
}
