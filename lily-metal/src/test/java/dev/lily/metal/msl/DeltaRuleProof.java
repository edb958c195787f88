package dev.lily.metal.msl;

import dev.lily.metal.msl.CpuKernels.Geometry;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.stream.IntStream;

/** The 35B's Gated DeltaNet: 16 key heads, 32 value heads, 128 dimensions, a convolution over 4. */
final class DeltaRuleProof {
  private static final float EPS = 1e-6f;
  private static final int TAPS = 4;
  private static final int SLOTS = 4;

  private final Proof proof;
  private final int keyHeads;
  private final int valueHeads;
  private final int dim;
  private final int channels;
  private final int width;
  private final int windowElements;
  private final int stateElements;
  private final float[] conv;
  private final float[] aLog;
  private final float[] dtBias;
  private final float[] gain;

  DeltaRuleProof(Proof proof) {
    this.proof = proof;
    keyHeads = proof.pick(2, 4, 16);
    valueHeads = 2 * keyHeads;
    dim = proof.pick(32, 128, 128);
    channels = 2 * keyHeads * dim + valueHeads * dim;
    width = 3 * dim;
    windowElements = valueHeads * (TAPS - 1) * width;
    stateElements = valueHeads * dim * dim;
    conv = proof.uniform(channels * TAPS, -0.7, 0.7);
    aLog = proof.uniform(valueHeads, -1, 1);
    dtBias = proof.uniform(valueHeads, -1, 1);
    gain = proof.uniform(dim, 0.5, 1.5);
  }

  void run() {
    step();
    int half = proof.pick(3, 30, 300);
    prefill(new Sequence(0, half, 2, 0), new Sequence(half, proof.pick(2, 18, 212), 0, 0));
    if (!proof.isSmoke()) {
      prefill(new Sequence(0, proof.pick(0, 64, 2048), 1, 0));
    }
  }

  /** A sequence's rows in a pass. */
  private record Sequence(int firstRow, int rows, int slot, int position) {}

  /** Inputs of a pass over some rows, random, and slots that hold something. */
  private final class Pass {
    final int rows;
    final Sequence[] sequences;
    final int[] sequenceOf;
    final float[] qkv;
    final float[] z;
    final float[] a;
    final float[] b;
    final float[] windowBefore;
    final float[] stateBefore;
    final MemorySegment window;
    final MemorySegment state;

    Pass(Sequence... sequences) {
      this.sequences = sequences;
      rows = Arrays.stream(sequences).mapToInt(Sequence::rows).sum();
      sequenceOf = new int[rows];
      for (int s = 0; s < sequences.length; s++) {
        int first = sequences[s].firstRow();
        Arrays.fill(sequenceOf, first, first + sequences[s].rows(), s);
      }
      qkv = proof.uniformBf16(rows * channels, -2, 2);
      z = proof.uniformBf16(rows * valueHeads * dim, -3, 3);
      a = proof.uniformBf16(rows * valueHeads, -4, 4);
      b = proof.uniformBf16(rows * valueHeads, -4, 4);
      windowBefore = proof.uniformBf16(SLOTS * windowElements, -2, 2);
      // Value heads that share a key head hold the same inputs of its channels.
      for (int slot = 0; slot < SLOTS; slot++) {
        for (int at = 0; at < windowElements; at++) {
          if (at / (TAPS - 1) / width % 2 == 1 && at % width < 2 * dim) {
            windowBefore[slot * windowElements + at] =
                windowBefore[slot * windowElements + at - (TAPS - 1) * width];
          }
        }
      }
      stateBefore = proof.uniform(SLOTS * stateElements, -0.5, 0.5);
      window = Data.bf16(windowBefore);
      state = Data.f32(stateBefore);
    }

    MemorySegment sequences() {
      return Data.ints(
          Arrays.stream(sequences)
              .flatMapToInt(s -> IntStream.of(s.firstRow(), s.rows(), s.slot(), s.position()))
              .toArray());
    }

    MemorySegment parameters() {
      return Data.struct(keyHeads, valueHeads, dim, dim, TAPS, windowElements, stateElements, EPS);
    }

    String shape() {
      return rows + " rows, " + sequences.length + " sequences";
    }

    int channel(int head, int c) {
      int keyHead = head / 2;
      return c < dim
          ? keyHead * dim + c
          : c < 2 * dim
              ? (keyHeads + keyHead) * dim + c - dim
              : 2 * keyHeads * dim + head * dim + c - 2 * dim;
    }

    /** A head's input so many rows before a row, from the window where that is before the pass. */
    float input(int row, int back, int head, int c) {
      Sequence s = sequences[sequenceOf[row]];
      int before = row - s.firstRow() - back;
      return before >= 0
          ? qkv[(row - back) * channels + channel(head, c)]
          : windowBefore[
              s.slot() * windowElements + (head * (TAPS - 1) + TAPS - 1 + before) * width + c];
    }

    /** A head's channels after the convolution, the query and key normed. */
    double[] mixed(int row, int head) {
      double[] out = new double[width];
      for (int c = 0; c < width; c++) {
        double sum = 0;
        for (int tap = 0; tap < TAPS; tap++) {
          sum += (double) conv[channel(head, c) * TAPS + tap] * input(row, TAPS - 1 - tap, head, c);
        }
        out[c] = sum / (1 + Math.exp(-sum));
      }
      double q = 0;
      double k = 0;
      for (int d = 0; d < dim; d++) {
        q += out[d] * out[d];
        k += out[dim + d] * out[dim + d];
      }
      for (int d = 0; d < dim; d++) {
        out[d] /= Math.sqrt(q + 1e-6) * Math.sqrt(dim);
        out[dim + d] /= Math.sqrt(k + 1e-6);
      }
      return out;
    }

    double decay(int row, int head) {
      double gate = a[row * valueHeads + head] + dtBias[head];
      return Math.exp(-Math.exp(aLog[head]) * Math.log1p(Math.exp(gate)));
    }

    double beta(int row, int head) {
      return 1 / (1 + Math.exp(-b[row * valueHeads + head]));
    }

    void checkWindow(String kernel) {
      float[] after = Data.readBf16(window);
      boolean same = true;
      boolean[] used = new boolean[SLOTS];
      for (Sequence s : sequences) {
        used[s.slot()] = true;
        int last = s.firstRow() + s.rows() - 1;
        for (int at = 0; at < windowElements; at++) {
          int tap = at / width % (TAPS - 1);
          float expected = input(last, TAPS - 2 - tap, at / width / (TAPS - 1), at % width);
          same &= after[s.slot() * windowElements + at] == expected;
        }
      }
      for (int i = 0; i < after.length; i++) {
        same &= used[i / windowElements] || after[i] == windowBefore[i];
      }
      proof.checkExact(kernel, shape() + ", window", same);
    }
  }

  /** One step of a state's column: returns the output. */
  private double advance(
      double[] column, double[] qkv, int q, int k, double v, double decay, double beta) {
    double read = 0;
    for (int i = 0; i < dim; i++) {
      column[i] *= decay;
      read += column[i] * qkv[k + i];
    }
    double d = beta * (v - read);
    double out = 0;
    for (int i = 0; i < dim; i++) {
      column[i] += qkv[k + i] * d;
      out += column[i] * qkv[q + i];
    }
    return out;
  }

  private double[] column(float[] states, int slot, int head, int j) {
    double[] column = new double[dim];
    for (int i = 0; i < dim; i++) {
      column[i] = states[slot * stateElements + (head * dim + j) * dim + i];
    }
    return column;
  }

  /** Gated norm of a head's outputs. */
  private void norm(double[] outputs, float[] z, double[] y, int at) {
    double squares = Arrays.stream(outputs).map(v -> v * v).sum();
    for (int j = 0; j < dim; j++) {
      double gate = z[at + j] / (1 + Math.exp(-z[at + j]));
      y[at + j] = outputs[j] / Math.sqrt(squares / dim + EPS) * gain[j] * gate;
    }
  }

  private void step() {
    Pass pass =
        new Pass(new Sequence(2, 1, 0, 9), new Sequence(0, 1, 3, 5), new Sequence(1, 1, 2, 0));
    MemorySegment y = Data.poisonedBf16(3 * valueHeads * dim);
    proof.dispatch(
        "delta_step_k128",
        Geometry.of(valueHeads, 3, 1, 512),
        Data.bf16(pass.qkv),
        Data.bf16(pass.z),
        Data.bf16(pass.a),
        Data.bf16(pass.b),
        Data.f32(conv),
        Data.f32(aLog),
        Data.f32(dtBias),
        Data.f32(gain),
        pass.sequences(),
        pass.window,
        pass.state,
        y,
        pass.parameters());
    double[] expected = new double[3 * valueHeads * dim];
    double[] states = new double[SLOTS * stateElements];
    Arrays.setAll(states, i -> pass.stateBefore[i]);
    for (Sequence s : pass.sequences) {
      for (int head = 0; head < valueHeads; head++) {
        double[] qkv = pass.mixed(s.firstRow(), head);
        double decay = pass.decay(s.firstRow(), head);
        double beta = pass.beta(s.firstRow(), head);
        double[] outputs = new double[dim];
        for (int j = 0; j < dim; j++) {
          double[] column = column(pass.stateBefore, s.slot(), head, j);
          outputs[j] = advance(column, qkv, 0, dim, qkv[2 * dim + j], decay, beta);
          System.arraycopy(
              column, 0, states, s.slot() * stateElements + (head * dim + j) * dim, dim);
        }
        norm(outputs, pass.z, expected, (s.firstRow() * valueHeads + head) * dim);
      }
    }
    String shape = "3 sequences x " + valueHeads + " x " + dim;
    proof.check("delta_step_k128", shape, Data.readBf16(y), expected, Proof.BF16);
    proof.check("delta_step_k128", shape + ", state", Data.readF32(pass.state), states, Proof.FP32);
    pass.checkWindow("delta_step_k128");
  }

  private void prefill(Sequence... sequences) {
    Pass pass = new Pass(sequences);
    MemorySegment mixed = Data.poisonedF32(pass.rows * channels);
    MemorySegment gates = Data.poisonedF32(pass.rows * valueHeads * 2);
    MemorySegment outputs = Data.poisonedF32(pass.rows * valueHeads * dim);
    MemorySegment y = Data.poisonedBf16(pass.rows * valueHeads * dim);
    MemorySegment qkv = Data.bf16(pass.qkv);
    MemorySegment list = pass.sequences();
    MemorySegment sequenceOf = Data.ints(pass.sequenceOf);
    proof.dispatch(
        "delta_mix",
        Geometry.of(Math.ceilDiv(2 * keyHeads + valueHeads, 8), pass.rows, 1, 256),
        qkv,
        Data.bf16(pass.a),
        Data.bf16(pass.b),
        Data.f32(conv),
        Data.f32(aLog),
        Data.f32(dtBias),
        list,
        sequenceOf,
        pass.window,
        mixed,
        gates,
        pass.parameters());
    checkMixed(pass, Data.readF32(mixed), Data.readF32(gates));
    proof.dispatch(
        "delta_scan_k128",
        Geometry.of(Math.ceilDiv(dim, 16), valueHeads, sequences.length, 128),
        mixed,
        gates,
        list,
        pass.state,
        outputs,
        pass.parameters());
    checkScan(pass, Data.readF32(mixed), Data.readF32(gates), Data.readF32(outputs));
    proof.dispatch(
        "delta_norm",
        Geometry.of(Math.ceilDiv(valueHeads, 8), pass.rows, 1, 256),
        outputs,
        Data.bf16(pass.z),
        Data.f32(gain),
        qkv,
        list,
        sequenceOf,
        pass.window,
        y,
        pass.parameters());
    float[] scanned = Data.readF32(outputs);
    double[] expected = new double[scanned.length];
    for (int at = 0; at < expected.length; at += dim) {
      double[] head = new double[dim];
      for (int j = 0; j < dim; j++) {
        head[j] = scanned[at + j];
      }
      norm(head, pass.z, expected, at);
    }
    proof.check("delta_norm", pass.shape(), Data.readBf16(y), expected, Proof.BF16);
    pass.checkWindow("delta_norm");
  }

  private void checkMixed(Pass pass, float[] mixed, float[] gates) {
    double[] expected = new double[mixed.length];
    double[] expectedGates = new double[gates.length];
    IntStream.range(0, pass.rows)
        .parallel()
        .forEach(
            row -> {
              for (int head = 0; head < valueHeads; head++) {
                double[] qkv = pass.mixed(row, head);
                for (int c = 0; c < width; c++) {
                  expected[row * channels + pass.channel(head, c)] = qkv[c];
                }
                expectedGates[2 * (row * valueHeads + head)] = pass.decay(row, head);
                expectedGates[2 * (row * valueHeads + head) + 1] = pass.beta(row, head);
              }
            });
    proof.check("delta_mix", pass.shape(), mixed, expected, Proof.FP32);
    proof.check("delta_mix", pass.shape() + ", gates", gates, expectedGates, Proof.FP32);
  }

  /** The recurrence over what the kernel was given, for some value columns of every head. */
  private void checkScan(Pass pass, float[] mixed, float[] gates, float[] outputs) {
    proof.checkWritten("delta_scan_k128", outputs);
    int[] columns = proof.sample(dim, 12);
    float[] states = Data.readF32(pass.state);
    int each = columns.length * valueHeads;
    float[] actual = new float[pass.rows * each];
    double[] expected = new double[actual.length];
    float[] actualStates = new float[pass.sequences.length * each * dim];
    double[] expectedStates = new double[actualStates.length];
    IntStream.range(0, pass.sequences.length * each)
        .parallel()
        .forEach(
            item -> {
              Sequence s = pass.sequences[item / each];
              int head = item % each / columns.length;
              int j = columns[item % columns.length];
              double[] column = column(pass.stateBefore, s.slot(), head, j);
              double[] qk = new double[2 * dim];
              for (int row = s.firstRow(); row < s.firstRow() + s.rows(); row++) {
                for (int i = 0; i < 2 * dim; i++) {
                  qk[i] = mixed[row * channels + pass.channel(head, i)];
                }
                int gate = 2 * (row * valueHeads + head);
                double v = mixed[row * channels + pass.channel(head, 2 * dim + j)];
                int at = row * each + item % each;
                expected[at] = advance(column, qk, 0, dim, v, gates[gate], gates[gate + 1]);
                actual[at] = outputs[(row * valueHeads + head) * dim + j];
              }
              for (int i = 0; i < dim; i++) {
                expectedStates[item * dim + i] = column[i];
                actualStates[item * dim + i] =
                    states[s.slot() * stateElements + (head * dim + j) * dim + i];
              }
            });
    proof.check("delta_scan_k128", pass.shape(), actual, expected, Proof.FP32);
    proof.check(
        "delta_scan_k128", pass.shape() + ", state", actualStates, expectedStates, Proof.FP32);
  }
}
