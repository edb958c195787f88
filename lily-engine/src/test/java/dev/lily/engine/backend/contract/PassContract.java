package dev.lily.engine.backend.contract;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.backend.DeviceState;
import dev.lily.engine.backend.PageTable;
import dev.lily.engine.backend.PendingPass;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.engine.sampling.SamplingParameters;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import org.junit.jupiter.api.Test;

/** Whole passes of a small model: what must come out bit for bit equal. */
abstract class PassContract {
  private static final int V = TinyModel.VOCABULARY;
  private static final int LENGTH = 40;

  private final BackendContract contract;

  PassContract(BackendContract contract) {
    this.contract = contract;
  }

  /** One sequence of a model, with its tokens and what it holds. */
  private static final class Sequence {
    private final int[] tokens;
    private final PageTable pages = new PageTable();
    private final int slot;
    private int position;

    Sequence(TinyModel model, int number, int[] tokens) {
      this.tokens = tokens;
      slot = number;
      for (int i = 0; i <= LENGTH / TinyModel.PAGE_TOKENS; i++) {
        pages.add(i * 16 + number);
      }
      model.state().clearSlot(slot);
    }

    /** Adds the next rows, all with logits. */
    void addTo(RowPlan plan, int count) {
      plan.add(tokens, position, count, position, pages, slot, count, RowPlan.NO_SAMPLING);
      position += count;
    }
  }

  private static int[] tokens(int number) {
    return new Values(number).tokens(LENGTH, V);
  }

  /** Logits of all rows of a sequence, taken in chunks. */
  private static float[] run(TinyModel model, Sequence sequence, int... chunks) {
    float[] all = new float[0];
    RowPlan plan = new RowPlan(TinyModel.LIMITS);
    for (int chunk : chunks) {
      plan.clear();
      sequence.addTo(plan, chunk);
      float[] logits = new float[chunk * V];
      model.forward(plan, logits);
      all = Arrays.copyOf(all, all.length + logits.length);
      System.arraycopy(logits, 0, all, all.length - logits.length, logits.length);
    }
    return all;
  }

  @Test
  void givesFiniteAndVariedLogits() {
    try (TinyModel model = new TinyModel(contract.open())) {
      float[] logits = run(model, new Sequence(model, 0, tokens(0)), LENGTH);
      for (float logit : logits) {
        assertThat(logit).isFinite();
      }
      assertThat(logits[3]).isNotEqualTo(logits[V + 3]);
    }
  }

  @Test
  void givesASequenceTheSameBitsAloneAndAmongSevenOthers() {
    try (TinyModel model = new TinyModel(contract.open())) {
      float[][] alone = new float[8][];
      for (int s = 0; s < 8; s++) {
        alone[s] = run(model, new Sequence(model, s, tokens(s)), 5, 1, 1, 3);
      }
      Sequence[] sequences = new Sequence[8];
      for (int s = 0; s < 8; s++) {
        sequences[s] = new Sequence(model, 15 - s, tokens(s));
      }
      int done = 0;
      RowPlan plan = new RowPlan(TinyModel.LIMITS);
      for (int chunk : new int[] {5, 1, 1, 3}) {
        plan.clear();
        for (Sequence sequence : sequences) {
          sequence.addTo(plan, chunk);
        }
        float[] logits = new float[8 * chunk * V];
        model.forward(plan, logits);
        for (int s = 0; s < 8; s++) {
          assertThat(Arrays.copyOfRange(logits, s * chunk * V, (s + 1) * chunk * V))
              .containsExactly(Arrays.copyOfRange(alone[s], done * V, (done + chunk) * V));
        }
        done += chunk;
      }
    }
  }

  @Test
  void givesTheSameBitsWhereverPrefillIsCut() {
    try (TinyModel model = new TinyModel(contract.open())) {
      float[] whole = run(model, new Sequence(model, 0, tokens(0)), LENGTH);
      for (int cut = 1; cut < LENGTH; cut++) {
        assertThat(run(model, new Sequence(model, 1, tokens(0)), cut, LENGTH - cut))
            .containsExactly(whole);
      }
      int[] ones = new int[LENGTH];
      Arrays.fill(ones, 1);
      assertThat(run(model, new Sequence(model, 2, tokens(0)), ones)).containsExactly(whole);
      assertThat(run(model, new Sequence(model, 3, tokens(0)), 7, 11, 13, 9))
          .containsExactly(whole);
    }
  }

  @Test
  void mixesPrefillAndDecodeInOnePlan() {
    try (TinyModel model = new TinyModel(contract.open())) {
      float[] first = run(model, new Sequence(model, 0, tokens(0)), LENGTH);
      float[] second = run(model, new Sequence(model, 1, tokens(1)), LENGTH);
      Sequence decoding = new Sequence(model, 2, tokens(0));
      run(model, decoding, 30);
      Sequence prefilling = new Sequence(model, 3, tokens(1));
      RowPlan plan = new RowPlan(TinyModel.LIMITS);
      float[] logits = new float[5 * V];
      for (int step = 0; step < 10; step++) {
        plan.clear();
        prefilling.addTo(plan, 4);
        decoding.addTo(plan, 1);
        model.forward(plan, logits);
        assertThat(Arrays.copyOf(logits, 4 * V))
            .containsExactly(Arrays.copyOfRange(second, 4 * step * V, 4 * (step + 1) * V));
        assertThat(Arrays.copyOfRange(logits, 4 * V, 5 * V))
            .containsExactly(Arrays.copyOfRange(first, (30 + step) * V, (31 + step) * V));
      }
    }
  }

  @Test
  void givesTheSameBitsAgainAndInAnotherInstance() {
    float[] once;
    try (TinyModel model = new TinyModel(contract.open())) {
      once = run(model, new Sequence(model, 0, tokens(0)), 20, 1, 1, 18);
      assertThat(run(model, new Sequence(model, 0, tokens(0)), 20, 1, 1, 18)).containsExactly(once);
    }
    try (TinyModel model = new TinyModel(contract.open())) {
      assertThat(run(model, new Sequence(model, 4, tokens(0)), LENGTH)).containsExactly(once);
    }
  }

  @Test
  void continuesFromASnapshotAsIfItHadNeverLeft() {
    try (TinyModel model = new TinyModel(contract.open())) {
      float[] whole = run(model, new Sequence(model, 0, tokens(0)), LENGTH);
      Sequence origin = new Sequence(model, 1, tokens(0));
      run(model, origin, 21);
      // The first page is shared; the second is half full and must be copied.
      model.state().copySlot(origin.slot, 9);
      model.state().copyPage(origin.pages.page(1), 5);
      run(model, origin, LENGTH - 21);
      Sequence fork = new Sequence(model, 6, tokens(0));
      fork.pages.set(0, origin.pages.page(0));
      fork.pages.set(1, 5);
      fork.position = 21;
      model.state().copySlot(9, fork.slot);
      assertThat(run(model, fork, 1, LENGTH - 22))
          .containsExactly(Arrays.copyOfRange(whole, 21 * V, LENGTH * V));
    }
  }

  /** A state of 21 tokens outside of the device: its two pages and its slot. */
  private record Bytes(MemorySegment firstPage, MemorySegment lastPage, MemorySegment slot) {

    /** Reads the slot in two parts, neither of which ends where a layer or a head does. */
    static Bytes read(DeviceState state, int firstPage, int lastPage, int slot, Arena arena) {
      Bytes bytes =
          new Bytes(
              arena.allocate(state.pageBytes(), 8),
              arena.allocate(state.pageBytes(), 8),
              arena.allocate(state.slotBytes(), 8));
      state.readPage(firstPage, bytes.firstPage);
      state.readPage(lastPage, bytes.lastPage);
      long half = state.slotBytes() * 5 / 9;
      state.readSlot(slot, 0, bytes.slot.asSlice(0, half));
      state.readSlot(slot, half, bytes.slot.asSlice(half));
      return bytes;
    }

    void write(DeviceState state, int firstPage, int lastPage, int slot) {
      state.writePage(firstPage, this.firstPage);
      state.writePage(lastPage, this.lastPage);
      long part = state.slotBytes() * 7 / 9;
      state.writeSlot(slot, part, this.slot.asSlice(part));
      state.writeSlot(slot, 0, this.slot.asSlice(0, part));
    }
  }

  @Test
  void continuesFromBytesThatLeftTheDevice() {
    try (TinyModel model = new TinyModel(contract.open());
        Arena arena = Arena.ofConfined()) {
      float[] whole = run(model, new Sequence(model, 0, tokens(0)), LENGTH);
      float[] rest = Arrays.copyOfRange(whole, 21 * V, LENGTH * V);
      float[] different = run(model, new Sequence(model, 2, tokens(1)), LENGTH);
      Sequence origin = new Sequence(model, 1, tokens(0));
      run(model, origin, 21);
      // What is read is the copy, whether or not a device has made it yet.
      model.state().copySlot(origin.slot, 9);
      model.state().copyPage(origin.pages.page(1), 5);
      Bytes bytes = Bytes.read(model.state(), origin.pages.page(0), 5, 9, arena);
      assertThat(run(model, origin, LENGTH - 21)).containsExactly(rest);

      // Into the place of another sequence, whose slot is asked to be cleared just before.
      Sequence fork = new Sequence(model, 2, tokens(0));
      bytes.write(model.state(), fork.pages.page(0), fork.pages.page(1), fork.slot);
      fork.position = 21;
      assertThat(run(model, fork, 1, LENGTH - 22)).containsExactly(rest);
      assertThat(run(model, new Sequence(model, 2, tokens(1)), LENGTH)).containsExactly(different);

      try (TinyModel other = new TinyModel(contract.open())) {
        assertThat(other.state().format()).isEqualTo(model.state().format());
        Sequence resumed = new Sequence(other, 7, tokens(0));
        bytes.write(other.state(), resumed.pages.page(0), resumed.pages.page(1), resumed.slot);
        resumed.position = 21;
        Sequence beside = new Sequence(other, 2, tokens(1));
        assertThat(run(other, beside, LENGTH)).containsExactly(different);
        assertThat(run(other, resumed, LENGTH - 21)).containsExactly(rest);
        Bytes again =
            Bytes.read(
                other.state(), resumed.pages.page(0), resumed.pages.page(1), resumed.slot, arena);
        assertThat(again.firstPage.mismatch(bytes.firstPage)).isEqualTo(-1);
      }
    }
  }

  @Test
  void bytesThatAreReadIntoAPageThatIsAboutToBeCopiedComeAfterTheCopy() {
    try (TinyModel model = new TinyModel(contract.open());
        Arena arena = Arena.ofConfined()) {
      float[] whole = run(model, new Sequence(model, 0, tokens(0)), LENGTH);
      Sequence origin = new Sequence(model, 1, tokens(0));
      run(model, origin, 21);
      Bytes bytes =
          Bytes.read(model.state(), origin.pages.page(0), origin.pages.page(1), origin.slot, arena);
      Sequence other = new Sequence(model, 2, tokens(1));
      run(model, other, 21);
      Bytes others =
          Bytes.read(model.state(), other.pages.page(0), other.pages.page(1), other.slot, arena);
      // A copy to a fork is asked for, then its source is given to somebody else.
      Sequence fork = new Sequence(model, 6, tokens(0));
      model.state().copyPage(origin.pages.page(0), fork.pages.page(0));
      model.state().copyPage(origin.pages.page(1), fork.pages.page(1));
      model.state().copySlot(origin.slot, fork.slot);
      others.write(model.state(), origin.pages.page(0), origin.pages.page(1), origin.slot);
      fork.position = 21;
      assertThat(run(model, fork, LENGTH - 21))
          .containsExactly(Arrays.copyOfRange(whole, 21 * V, LENGTH * V));
      // And a place that a copy was asked for is given to somebody else.
      model.state().copyPage(other.pages.page(0), fork.pages.page(0));
      model.state().copyPage(other.pages.page(1), fork.pages.page(1));
      model.state().copySlot(other.slot, fork.slot);
      bytes.write(model.state(), fork.pages.page(0), fork.pages.page(1), fork.slot);
      fork.position = 21;
      assertThat(run(model, fork, LENGTH - 21))
          .containsExactly(Arrays.copyOfRange(whole, 21 * V, LENGTH * V));
    }
  }

  @Test
  void decodesFromTheTokensThatNeverLeftTheDevice() {
    SamplingParameters parameters =
        SamplingParameters.of(SamplingOptions.builder().temperature(0.9).build(), 77, -1);
    try (TinyModel model = new TinyModel(contract.open())) {
      boolean onOwnPath = !contract.decodesToTheBitsOfPrefill();
      int[] literal = decode(model, new Sequence(model, 0, tokens(0)), parameters, onOwnPath);
      int[] resident = decode(model, new Sequence(model, 1, tokens(0)), parameters, true);
      assertThat(resident).containsExactly(literal);
    }
  }

  private static int[] decode(
      TinyModel model, Sequence sequence, SamplingParameters parameters, boolean resident) {
    model.state().beginSampling(0, parameters, new int[0]);
    int[] sampled = new int[20];
    RowPlan plan = new RowPlan(TinyModel.LIMITS);
    plan.clear();
    plan.add(sequence.tokens, 0, 10, 0, sequence.pages, sequence.slot, 1, 0);
    for (int step = 0; step < sampled.length; step++) {
      PendingPass pass = model.forward(plan, null);
      sampled[step] = pass.token(0);
      int[] next = {resident ? RowPlan.PREVIOUS_TOKEN : sampled[step]};
      plan.clear();
      plan.add(next, 0, 1, 10 + step, sequence.pages, sequence.slot, 1, 0);
    }
    return sampled;
  }
}
