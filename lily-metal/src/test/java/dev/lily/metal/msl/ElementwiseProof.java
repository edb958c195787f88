package dev.lily.metal.msl;

import dev.lily.metal.msl.CpuKernels.Geometry;
import java.lang.foreign.MemorySegment;

/** The 35B's embedding, gathering and residual norm, and copies of its slots. */
final class ElementwiseProof {
  private static final float EPS = 1e-6f;

  private final Proof proof;
  private final int hidden;
  private final int rows;

  ElementwiseProof(Proof proof) {
    this.proof = proof;
    hidden = proof.pick(320, 2048, 2048);
    rows = proof.pick(3, 64, 2048);
  }

  void run() {
    embed();
    gatherRows();
    addNorm();
    copyAndClear();
  }

  private Geometry perColumn(int count) {
    return Geometry.of(Math.ceilDiv(hidden, 256), count, 1, 256);
  }

  private void embed() {
    int vocabulary = proof.pick(20, 4096, 248_320);
    AffineMatrix w = AffineMatrix.random(proof, 4, vocabulary, hidden);
    int[] tokens = new int[rows];
    int[] slots = new int[rows];
    int[] last = {proof.below(vocabulary), vocabulary - 1};
    for (int r = 0; r < rows; r++) {
      tokens[r] = r % 3 == 2 ? -1 : proof.below(vocabulary);
      slots[r] = r % 2;
    }
    MemorySegment out = Data.poisonedF32(rows * hidden);
    proof.dispatch(
        "embed_q4_f32",
        perColumn(rows),
        w.codes(),
        w.scales(),
        w.biases(),
        Data.ints(tokens),
        Data.ints(slots),
        Data.ints(last),
        out,
        Data.struct(hidden, AffineMatrix.GROUP, vocabulary));
    float[] actual = Data.readF32(out);
    boolean same = true;
    for (int r = 0; r < rows; r++) {
      double[] expected = w.row(tokens[r] < 0 ? last[slots[r]] : tokens[r]);
      for (int c = 0; c < hidden; c++) {
        same &= actual[r * hidden + c] == (float) expected[c];
      }
    }
    proof.checkExact("embed_q4_f32", rows + " of " + vocabulary + " x " + hidden, same);
  }

  private void gatherRows() {
    int wanted = Math.min(rows, 8);
    float[] x = proof.uniform(rows * hidden, -2, 2);
    float[] branch = proof.uniformBf16(rows * hidden, -2, 2);
    int[] from = proof.sample(rows, wanted);
    MemorySegment out = Data.poisonedF32(from.length * hidden);
    proof.dispatch(
        "gather_rows",
        perColumn(from.length),
        Data.f32(x),
        Data.bf16(branch),
        Data.ints(from),
        out,
        Data.struct(hidden));
    float[] actual = Data.readF32(out);
    boolean same = true;
    for (int i = 0; i < actual.length; i++) {
      int at = from[i / hidden] * hidden + i % hidden;
      same &= actual[i] == x[at] + branch[at];
    }
    proof.checkExact("gather_rows", from.length + " x " + hidden, same);
  }

  private void addNorm() {
    float[] x = proof.uniform(rows * hidden, -3, 3);
    float[] branch = proof.uniformBf16(rows * hidden, -2, 2);
    float[] gain = proof.uniform(hidden, 0.5, 1.5);
    MemorySegment sum = Data.poisonedF32(x.length);
    MemorySegment n = Data.poisonedBf16(x.length);
    proof.dispatch(
        "add_norm",
        Geometry.of(rows, 256),
        Data.f32(x),
        Data.bf16(branch),
        Data.f32(gain),
        sum,
        n,
        Data.struct(hidden, 1, EPS));
    double[] sums = new double[x.length];
    double[] norms = new double[x.length];
    for (int r = 0; r < rows; r++) {
      double squares = 0;
      for (int i = r * hidden; i < (r + 1) * hidden; i++) {
        sums[i] = x[i] + branch[i];
        squares += sums[i] * sums[i];
      }
      for (int i = r * hidden; i < (r + 1) * hidden; i++) {
        norms[i] = sums[i] / Math.sqrt(squares / hidden + EPS) * gain[i % hidden];
      }
    }
    proof.check("add_norm", rows + " x " + hidden + ", sum", Data.readF32(sum), sums, Proof.FP32);
    proof.check("add_norm", rows + " x " + hidden + ", norm", Data.readBf16(n), norms, Proof.BF16);
  }

  private void copyAndClear() {
    int words = proof.pick(100, 3000, 100_003);
    MemorySegment from = Data.f32(proof.uniform(4 * words, -1, 1));
    MemorySegment to = Data.poisonedF32(4 * words + 4);
    Geometry geometry = Geometry.of(Math.ceilDiv(words, 256), 256);
    proof.dispatch("copy_words", geometry, from, to, Data.struct(words));
    boolean same = to.asSlice(0, from.byteSize()).mismatch(from) == -1;
    proof.checkExact("copy_words", words + " words", same && Float.isNaN(last(to)));
    proof.dispatch("clear_words", geometry, to, Data.struct(words));
    boolean isClear = true;
    for (float value : Data.readF32(to.asSlice(0, from.byteSize()))) {
      isClear &= value == 0;
    }
    proof.checkExact("clear_words", words + " words", isClear && Float.isNaN(last(to)));
  }

  private static float last(MemorySegment segment) {
    float[] values = Data.readF32(segment);
    return values[values.length - 1];
  }
}
