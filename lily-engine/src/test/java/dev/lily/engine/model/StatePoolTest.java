package dev.lily.engine.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.lily.engine.backend.StateLayout;
import java.util.Objects;
import org.junit.jupiter.api.Test;

class StatePoolTest {
  private static final int PAGE = 4;

  private final StateLayout layout = new StateLayout(1, 1, 8, PAGE, 6, 1, 4, 8, 1, 8, 8, 3, 2, 10);
  private final ScriptedDeviceState device =
      new ScriptedDeviceState(
          layout,
          breach -> {
            throw new AssertionError(breach);
          });
  private final StatePool pool = new StatePool(device);

  private SequenceState open(int maxTokens) {
    return Objects.requireNonNull(pool.open(maxTokens));
  }

  private static void run(SequenceState state, int tokens) {
    state.reserve(tokens);
    state.advance(tokens);
  }

  @Test
  void takesPagesOnDemandAndGivesThemBack() {
    SequenceState state = open(10);
    assertThat(pool.usedPages()).isZero();
    run(state, 1);
    assertThat(pool.usedPages()).isEqualTo(1);
    run(state, 4);
    assertThat(pool.usedPages()).as("tokens 0 to 4").isEqualTo(2);
    state.close();
    state.close();
    assertThat(pool.usedPages()).isZero();
    assertThat(pool.usedSlots()).isZero();
  }

  @Test
  void handsOutAgainWhatWasUsedBeforeItTouchesMore() {
    SequenceState first = open(2 * PAGE);
    run(first, 2 * PAGE);
    first.close();
    SequenceState second = open(2 * PAGE);
    run(second, 2 * PAGE);
    assertThat(second.recurrentSlot()).isEqualTo(first.recurrentSlot());
    assertThat(second.pages().page(0)).isLessThan(2);
    assertThat(second.pages().page(1)).isLessThan(2);
  }

  @Test
  void returnsToAMarkWithTheSecondSlot() {
    pool.setAsideSpares(1);
    assertThat(pool.maxSnapshots()).isZero();
    SequenceState state = open(5 * PAGE);
    run(state, PAGE + 1);
    int slot = state.recurrentSlot();
    state.mark();
    run(state, PAGE);
    assertThat(state.recurrentSlot()).isEqualTo(slot);
    state.rollBack();
    assertThat(state.position()).isEqualTo(PAGE + 1);
    int marked = state.recurrentSlot();
    assertThat(marked).isNotEqualTo(slot);
    assertThat(device.calls()).endsWith("copySlot %d %d".formatted(slot, marked));
    assertThatIllegalStateException().isThrownBy(state::rollBack);
    run(state, 3 * PAGE - 1);
    state.mark();
    assertThat(device.calls()).endsWith("copySlot %d %d".formatted(marked, slot));
    assertThat(pool.usedPages()).isEqualTo(4);
    state.close();
    assertThat(pool.usedSlots()).isZero();
  }

  @Test
  void marksNoMoreSequencesThanSparesAreSetAside() {
    SequenceState state = open(PAGE);
    assertThatIllegalStateException().isThrownBy(state::mark);
    assertThatThrownBy(() -> pool.setAsideSpares(2))
        .hasMessage("2 spare slots are asked for; of 3 slots 2 are the sequences' own");
    state.close();
  }

  @Test
  void opensNothingThatCouldRunOutOfPages() {
    SequenceState first = open(4 * PAGE);
    assertThat(pool.open(2 * PAGE + 1)).as("needs three of the two pages left").isNull();
    SequenceState second = open(2 * PAGE);
    run(first, 4 * PAGE);
    run(second, 2 * PAGE);
    assertThat(pool.usedPages()).isEqualTo(6);
    first.close();
    assertThat(open(4 * PAGE)).isNotNull();
  }

  @Test
  void opensNoMoreSequencesThanThereAreSamplingSlots() {
    open(1);
    open(1);
    assertThat(pool.open(1)).isNull();
  }

  @Test
  void refusesMoreTokensThanASequenceWasOpenedFor() {
    SequenceState state = open(PAGE);
    run(state, PAGE);
    assertThatThrownBy(() -> state.reserve(1))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("4 tokens cannot take 1 more");
  }

  @Test
  void clearsASlotOnceAndWithTheFirstTokens() {
    SequenceState state = open(PAGE);
    assertThat(device.calls()).isEmpty();
    run(state, 1);
    run(state, 2);
    assertThat(device.calls()).containsExactly("clearSlot " + state.recurrentSlot());
  }

  @Test
  void clearsNoSlotThatARestoreOverwrites() {
    SequenceState first = open(PAGE);
    SequenceState.Snapshot beginning = Objects.requireNonNull(first.snapshot());
    assertThat(device.calls()).as("even of an empty sequence").first().isEqualTo("clearSlot 0");
    SequenceState second = open(PAGE);
    second.restore(beginning);
    run(second, 1);
    assertThat(device.calls())
        .doesNotContain("clearSlot " + second.recurrentSlot())
        .last()
        .asString()
        .endsWith(" " + second.recurrentSlot());
  }

  @Test
  void aBlankSnapshotIsFilledFromBytesAndSharesPagesWithItsBase() {
    SequenceState state = open(3 * PAGE);
    run(state, PAGE + 1);
    SequenceState.Snapshot base = Objects.requireNonNull(state.snapshot());
    assertThat(pool.blankSnapshot(PAGE + 2, base, 1)).as("no slot is left").isNull();
    SequenceState.Snapshot shorter = base;
    state.close();
    assertThat(pool.usedPages()).isEqualTo(2);
    shorter.close();
    SequenceState.Snapshot first = Objects.requireNonNull(pool.blankSnapshot(PAGE, null, 0));
    assertThat(pool.snapshotPages()).isEqualTo(1);
    assertThat(pool.blankSnapshot(7 * PAGE, null, 0)).as("six pages in all").isNull();
    first.close();
    assertThat(pool.usedPages()).isZero();
    assertThat(pool.usedSlots()).isZero();
    assertThat(pool.snapshots()).isZero();
  }

  @Test
  void aSharedPageIsCopiedBeforeItIsWritten() {
    SequenceState state = open(2 * PAGE);
    run(state, PAGE + 1);
    int whole = state.pages().page(0);
    int partial = state.pages().page(1);
    SequenceState.Snapshot snapshot = Objects.requireNonNull(state.snapshot());
    assertThat(device.calls()).last().asString().startsWith("copySlot");
    run(state, 1);
    assertThat(state.pages().page(0)).as("a full page stays shared").isEqualTo(whole);
    assertThat(state.pages().page(1)).as("the partial one is copied").isNotEqualTo(partial);
    assertThat(device.calls())
        .last()
        .isEqualTo("copyPage " + partial + " " + state.pages().page(1));

    state.restore(snapshot);
    assertThat(state.position()).isEqualTo(PAGE + 1);
    assertThat(state.pages().page(1)).isEqualTo(partial);
    assertThat(pool.usedPages()).isEqualTo(2);
    snapshot.close();
    snapshot.close();
    assertThat(pool.usedPages()).isEqualTo(2);
    state.close();
    assertThat(pool.usedPages()).isZero();
    assertThat(pool.usedSlots()).isZero();
  }

  @Test
  void aSnapshotOutlivesItsSequence() {
    SequenceState state = open(PAGE);
    run(state, 3);
    SequenceState.Snapshot snapshot = Objects.requireNonNull(state.snapshot());
    state.close();
    assertThat(pool.usedPages()).isEqualTo(1);
    SequenceState other = open(PAGE);
    other.restore(snapshot);
    assertThat(other.position()).isEqualTo(3);
    other.close();
    snapshot.close();
    assertThat(pool.usedPages()).isZero();
  }

  @Test
  void makesNoMoreSnapshotsThanSequencesLeaveSlotsFor() {
    SequenceState state = open(2 * PAGE);
    run(state, PAGE);
    SequenceState.Snapshot snapshot = Objects.requireNonNull(state.snapshot());
    assertThat(state.snapshot()).as("the slots left are for sequences").isNull();
    assertThat(open(PAGE)).isNotNull();
    snapshot.close();
    assertThat(state.snapshot()).isNotNull();
  }

  @Test
  void snapshotsDoNotKeepSequencesOutButAreGivenUpForTheirPages() {
    SequenceState first = open(4 * PAGE);
    run(first, 4 * PAGE);
    SequenceState.Snapshot snapshot = Objects.requireNonNull(first.snapshot());
    first.close();
    pool.onShortage(() -> close(snapshot));
    SequenceState second = open(6 * PAGE);
    run(second, 2 * PAGE);
    assertThat(pool.snapshotPages()).isEqualTo(4);
    assertThat(pool.usedPages()).isEqualTo(6);
    run(second, PAGE);
    assertThat(pool.snapshotPages()).isZero();
    run(second, 3 * PAGE);
    assertThat(pool.sequencePages()).isEqualTo(6);
  }

  @Test
  void aPartialPageNeedsNoCopyOnceItsSnapshotWasGivenUp() {
    SequenceState state = open(6 * PAGE);
    run(state, 5 * PAGE + 1);
    SequenceState.Snapshot snapshot = Objects.requireNonNull(state.snapshot());
    pool.onShortage(() -> close(snapshot));
    int last = state.pages().page(5);
    run(state, 1);
    assertThat(state.pages().page(5)).isEqualTo(last);
    assertThat(device.calls()).noneMatch(call -> call.startsWith("copyPage"));
    assertThat(pool.snapshots()).isZero();
  }

  @Test
  void twoSequencesContinueOneSnapshotOnTheirOwnPages() {
    SequenceState first = open(2 * PAGE);
    run(first, PAGE + 1);
    SequenceState.Snapshot snapshot = Objects.requireNonNull(first.snapshot());
    SequenceState second = open(2 * PAGE);
    second.restore(snapshot);
    run(first, 1);
    run(second, 1);
    assertThat(first.pages().page(0)).isEqualTo(second.pages().page(0));
    assertThat(first.pages().page(1)).isNotEqualTo(second.pages().page(1));
    assertThat(pool.usedPages()).as("one shared, three of the second").isEqualTo(4);
    first.close();
    second.close();
    assertThat(pool.usedPages()).isEqualTo(2);
    assertThat(pool.committedPages()).isZero();
    snapshot.close();
    assertThat(pool.usedPages()).isZero();
  }

  private boolean close(SequenceState.Snapshot snapshot) {
    boolean open = pool.snapshots() > 0;
    snapshot.close();
    return open;
  }
}
