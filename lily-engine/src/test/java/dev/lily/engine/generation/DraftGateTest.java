package dev.lily.engine.generation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Worked by hand: credit is in tokens, a further row costs so many of them. */
class DraftGateTest {

  @Test
  void affordsWhatCanBeLostNowAndInTheReplay() {
    DraftGate gate = new DraftGate(3, 10);
    assertThat(gate.affordable(1.5, 1, false)).as("one wrong row and one again").isEqualTo(1);
    assertThat(gate.affordable(1, 1, false)).isEqualTo(2);
    assertThat(gate.affordable(1, 3, false)).isZero();
    assertThat(gate.affordable(0.25, 1, false)).isEqualTo(11);
    assertThat(gate.affordable(0, 1, false)).isEqualTo(SpeculationOptions.MAX_DRAFT_TOKENS);
  }

  @Test
  void letsALongDraftFollowOneThatWasRightWhileThereIsCredit() {
    DraftGate gate = new DraftGate(3, 10);
    assertThat(gate.affordable(1, 1, true)).isEqualTo(SpeculationOptions.MAX_DRAFT_TOKENS);
    gate.pay(2.9);
    assertThat(gate.affordable(1, 1, true)).isEqualTo(SpeculationOptions.MAX_DRAFT_TOKENS);
    gate.passed(8, 1, 1);
    assertThat(gate.affordable(1, 1, true)).isZero();
  }

  @Test
  void paysRowsAndIsPaidTokens() {
    DraftGate gate = new DraftGate(3, 10);
    gate.passed(4, 5, 0.5);
    assertThat(gate.credit()).isEqualTo(3 - 2 + 4 + 5 * 0.02, within(1e-9));
    gate.passed(4, 1, 0.5);
    assertThat(gate.credit()).isEqualTo(5.1 - 2 + 0.02, within(1e-9));
    gate.passed(1, 1, 0.5);
    assertThat(gate.credit()).as("the right row again").isEqualTo(3.12 - 0.5 + 0.02, within(1e-9));
    gate.pay(0.64);
    assertThat(gate.credit()).isEqualTo(2, within(1e-9));
  }

  @Test
  void holdsNoMoreThanItsLimit() {
    DraftGate gate = new DraftGate(3, 10);
    for (int pass = 0; pass < 20; pass++) {
      gate.passed(8, 9, 0.1);
    }
    assertThat(gate.credit()).isEqualTo(10);
  }

  @Test
  void isDryAfterWrongDraftsAndTriesAgainAfterManyTokens() {
    DraftGate gate = new DraftGate(3, 10);
    gate.passed(2, 1, 1); // two wrong
    gate.passed(1, 1, 1); // their replay
    assertThat(gate.credit()).isEqualTo(0.04, within(1e-9));
    int tokens = 0;
    while (gate.affordable(1, 1, false) == 0) {
      gate.passed(0, 1, 0);
      tokens++;
    }
    assertThat(tokens).as("1.96 at 0.02 a token").isBetween(98, 99);
  }

  /** Every draft is wrong: the time that is lost is bounded whatever a row costs. */
  @ParameterizedTest
  @ValueSource(doubles = {0.05, 0.3, 0.8, 1.5})
  void losesNoMoreThanTheGrantAndItsShareOfTheTime(double rowCost) {
    DraftGate gate = new DraftGate(3, 10);
    int plain = 5000;
    double lost = 0;
    int replayed = 0;
    for (int token = 0; token < plain; token++) {
      int drafted = Math.min(8, gate.affordable(rowCost, 1 + replayed, false));
      int further = replayed + drafted;
      gate.passed(further, 1, rowCost);
      lost += further * rowCost;
      replayed = drafted > 0 ? replayed + 1 : 0;
    }
    assertThat(lost).isLessThanOrEqualTo(3 + plain * DraftGate.ALLOWANCE);
    assertThat(lost).as("it does try").isGreaterThan(3);
  }
}
