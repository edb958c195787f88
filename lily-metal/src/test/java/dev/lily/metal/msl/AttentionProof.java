package dev.lily.metal.msl;

import dev.lily.metal.msl.CpuKernels.Geometry;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.math.BigDecimal;
import java.util.Arrays;
import java.util.stream.IntStream;

/** The 35B's attention: 16 heads over 2 of keys and values, 256 dimensions of which 64 turn. */
final class AttentionProof {
  private static final float EPS = 1e-6f;
  private static final double THETA = 10_000_000;
  private static final int KV_HEADS = 2;
  private static final int PAGE_TOKENS = 32;

  private final Proof proof;
  private final int heads;
  private final int packed;
  private final int dim;
  private final int rotaryDim;
  private final int layerElements;
  private final float[] queryGain;
  private final float[] keyGain;

  AttentionProof(Proof proof) {
    this.proof = proof;
    heads = proof.pick(6, 16, 16);
    packed = heads / KV_HEADS;
    dim = proof.pick(64, 256, 256);
    rotaryDim = dim / 4;
    layerElements = 2 * KV_HEADS * PAGE_TOKENS * dim;
    queryGain = proof.uniform(dim, 0.5, 1.5);
    keyGain = proof.uniform(dim, 0.5, 1.5);
  }

  void run() {
    decode(1, proof.pick(70, 130, 300));
    decode(proof.pick(33, 300, 4096));
    if (!proof.isSmoke()) {
      decode(proof.pick(0, 4200, 32_768));
    }
    int half = proof.pick(3, 20, 300);
    prefill(
        new Sequence(0, half, 0, proof.pick(17, 45, 700)),
        new Sequence(half, proof.pick(2, 12, 212), 1, 0));
    if (!proof.isSmoke()) {
      prefill(new Sequence(0, proof.pick(0, 33, 2048), 0, proof.pick(0, 31, 1000)));
    }
  }

  /** A sequence's rows in a pass. */
  private record Sequence(int firstRow, int rows, int slot, int position) {
    int tokens() {
      return position + rows;
    }
  }

  /** A pool of pages of two layers, the second one used, with earlier tokens in them. */
  private final class Pass {
    final Sequence[] sequences;
    final int rows;
    final int maxPages;
    final int[] table;
    final int[] positions;
    final int[] sequenceOf;
    final float[] queryGate;
    final float[] key;
    final float[] value;
    final MemorySegment pages;

    Pass(Sequence... sequences) {
      this.sequences = sequences;
      rows = Arrays.stream(sequences).mapToInt(Sequence::rows).sum();
      int most = Arrays.stream(sequences).mapToInt(Sequence::tokens).max().orElseThrow();
      maxPages = Math.ceilDiv(most, PAGE_TOKENS);
      int numPages = maxPages * sequences.length;
      table = IntStream.range(0, numPages).map(i -> numPages - 1 - i).toArray();
      positions = new int[rows];
      sequenceOf = new int[rows];
      for (int s = 0; s < sequences.length; s++) {
        for (int r = 0; r < sequences[s].rows(); r++) {
          positions[sequences[s].firstRow() + r] = sequences[s].position() + r;
          sequenceOf[sequences[s].firstRow() + r] = s;
        }
      }
      queryGate = proof.uniformBf16(rows * heads * 2 * dim, -2, 2);
      key = proof.uniformBf16(rows * KV_HEADS * dim, -2, 2);
      value = proof.uniformBf16(rows * KV_HEADS * dim, -2, 2);
      pages = Data.poisonedBf16(2 * numPages * layerElements);
      for (int s = 0; s < sequences.length; s++) {
        for (int token = 0; token < sequences[s].position(); token++) {
          float[] earlier = proof.uniformBf16(2 * KV_HEADS * dim, -2, 2);
          for (int head = 0; head < KV_HEADS; head++) {
            put(at(s, head, token, 0), earlier, 2 * head * dim);
            put(at(s, head, token, 1), earlier, (2 * head + 1) * dim);
          }
        }
      }
    }

    /** Element of the pages where a token's key (0) or value (1) of a head begins. */
    long at(int sequence, int head, int token, int which) {
      long page = table[sequence * maxPages + token / PAGE_TOKENS];
      return (2 * page + 1) * layerElements
          + ((long) (which * KV_HEADS + head) * PAGE_TOKENS + token % PAGE_TOKENS) * dim;
    }

    private void put(long at, float[] values, int from) {
      for (int d = 0; d < dim; d++) {
        short bits = (short) (Float.floatToRawIntBits(values[from + d]) >>> 16);
        pages.setAtIndex(ValueLayout.JAVA_SHORT, at + d, bits);
      }
    }

    double[] get(long at) {
      double[] values = new double[dim];
      for (int d = 0; d < dim; d++) {
        values[d] = Float.intBitsToFloat(pages.getAtIndex(ValueLayout.JAVA_SHORT, at + d) << 16);
      }
      return values;
    }

    MemorySegment parameters() {
      return Data.struct(
          heads,
          KV_HEADS,
          dim,
          rotaryDim,
          PAGE_TOKENS,
          2 * layerElements,
          layerElements,
          maxPages,
          rows,
          EPS,
          (float) (1 / Math.sqrt(dim)));
    }

    MemorySegment list() {
      return Data.ints(
          Arrays.stream(sequences)
              .flatMapToInt(s -> IntStream.of(s.firstRow(), s.rows(), s.slot(), s.position()))
              .toArray());
    }

    String shape() {
      return rows
          + " rows after "
          + String.join(
              ", ", Arrays.stream(sequences).map(s -> Integer.toString(s.position())).toList());
    }

    double[] query(int row, int head) {
      return rotated(queryGate, (row * heads + head) * 2 * dim, queryGain, positions[row]);
    }

    /** Attention of some rows over what the pages hold: {@code [rows, heads, dim]}. */
    double[] expected(int[] wanted) {
      double[] y = new double[wanted.length * heads * dim];
      IntStream.range(0, wanted.length * KV_HEADS)
          .parallel()
          .forEach(i -> attend(wanted[i / KV_HEADS], i % KV_HEADS, y, i / KV_HEADS * heads * dim));
      return y;
    }

    private void attend(int row, int kvHead, double[] y, int base) {
      int tokens = positions[row] + 1;
      double[][] q = new double[packed][];
      double[][] scores = new double[packed][tokens];
      double[] largest = new double[packed];
      Arrays.fill(largest, Double.NEGATIVE_INFINITY);
      for (int h = 0; h < packed; h++) {
        q[h] = rounded(query(row, kvHead * packed + h));
      }
      for (int t = 0; t < tokens; t++) {
        double[] k = get(at(sequenceOf[row], kvHead, t, 0));
        for (int h = 0; h < packed; h++) {
          for (int d = 0; d < dim; d++) {
            scores[h][t] += q[h][d] * k[d];
          }
          scores[h][t] /= Math.sqrt(dim);
          largest[h] = Math.max(largest[h], scores[h][t]);
        }
      }
      double[][] out = new double[packed][dim];
      double[] sum = new double[packed];
      for (int t = 0; t < tokens; t++) {
        double[] v = get(at(sequenceOf[row], kvHead, t, 1));
        for (int h = 0; h < packed; h++) {
          double weight = Math.exp(scores[h][t] - largest[h]);
          sum[h] += weight;
          for (int d = 0; d < dim; d++) {
            out[h][d] += weight * v[d];
          }
        }
      }
      for (int h = 0; h < packed; h++) {
        int head = kvHead * packed + h;
        for (int d = 0; d < dim; d++) {
          double gate = queryGate[(row * heads + head) * 2 * dim + dim + d];
          y[base + head * dim + d] = out[h][d] / sum[h] / (1 + Math.exp(-gate));
        }
      }
    }

    /** The keys and values that a pass appended. */
    void checkAppended(String kernel) {
      float[] actual = new float[rows * KV_HEADS * dim];
      double[] expected = new double[actual.length];
      boolean same = true;
      for (int row = 0; row < rows; row++) {
        for (int head = 0; head < KV_HEADS; head++) {
          int from = (row * KV_HEADS + head) * dim;
          double[] k = get(at(sequenceOf[row], head, positions[row], 0));
          double[] v = get(at(sequenceOf[row], head, positions[row], 1));
          double[] want = rotated(key, from, keyGain, positions[row]);
          for (int d = 0; d < dim; d++) {
            actual[from + d] = (float) k[d];
            expected[from + d] = want[d];
            same &= v[d] == value[from + d];
          }
        }
      }
      proof.check(kernel, shape() + ", keys", actual, expected, Proof.BF16);
      proof.checkExact(kernel, shape() + ", values", same);
    }
  }

  /** A head's element after norm and rotation. */
  private double[] rotated(float[] x, int from, float[] gain, int position) {
    double squares = 0;
    for (int d = 0; d < dim; d++) {
      squares += (double) x[from + d] * x[from + d];
    }
    double[] n = new double[dim];
    for (int d = 0; d < dim; d++) {
      n[d] = x[from + d] / Math.sqrt(squares / dim + EPS) * gain[d];
    }
    int half = rotaryDim / 2;
    for (int j = 0; j < half; j++) {
      double angle = position * Math.pow(THETA, -2.0 * j / rotaryDim);
      double a = n[j];
      double b = n[j + half];
      n[j] = a * Math.cos(angle) - b * Math.sin(angle);
      n[j + half] = b * Math.cos(angle) + a * Math.sin(angle);
    }
    return n;
  }

  private static double[] rounded(double[] x) {
    return Arrays.stream(x).map(v -> Data.toBf16((float) v)).toArray();
  }

  private MemorySegment turns() {
    MemorySegment turns = Data.bytes(8L * (rotaryDim / 2));
    for (int j = 0; j < rotaryDim / 2; j++) {
      double perPosition = Math.pow(THETA, -2.0 * j / rotaryDim) / (2 * Math.PI);
      long bits =
          new BigDecimal(perPosition)
              .multiply(new BigDecimal(2).pow(64))
              .toBigInteger()
              .longValue();
      turns.setAtIndex(ValueLayout.JAVA_LONG, j, bits);
    }
    return turns;
  }

  /** A row for each context, which counts the row itself. */
  private void decode(int... contexts) {
    Pass pass =
        new Pass(
            IntStream.range(0, contexts.length)
                .mapToObj(i -> new Sequence(i, 1, i, contexts[i] - 1))
                .toArray(Sequence[]::new));
    int blocks = Math.ceilDiv(packed, 8);
    int most = Arrays.stream(contexts).max().orElseThrow();
    MemorySegment partial = Data.poisonedF32(pass.rows * KV_HEADS * blocks * 64 * 8 * dim);
    MemorySegment stats = Data.poisonedF32(pass.rows * KV_HEADS * blocks * 64 * 8 * 2);
    MemorySegment y = Data.poisonedBf16(pass.rows * heads * dim);
    MemorySegment queryGate = Data.bf16(pass.queryGate);
    MemorySegment positions = Data.ints(pass.positions);
    String kernel = dim == 256 ? "attention_decode_d256" : "attention_decode";
    proof.dispatch(
        kernel,
        Geometry.of(Math.min(64, Math.ceilDiv(most, 64)), KV_HEADS * blocks, pass.rows, 256),
        queryGate,
        Data.bf16(pass.key),
        Data.bf16(pass.value),
        Data.f32(queryGain),
        Data.f32(keyGain),
        turns(),
        positions,
        Data.ints(pass.sequenceOf),
        Data.ints(pass.table),
        pass.pages,
        partial,
        stats,
        pass.parameters());
    pass.checkAppended(kernel);
    proof.dispatch(
        "attention_merge",
        Geometry.of(heads, pass.rows, 1, 256),
        partial,
        stats,
        queryGate,
        positions,
        y,
        pass.parameters());
    proof.check(
        "attention_decode, _merge",
        "contexts " + Arrays.toString(contexts),
        Data.readBf16(y),
        pass.expected(IntStream.range(0, pass.rows).toArray()),
        Proof.BF16_TWICE);
  }

  private void prefill(Sequence... sequences) {
    Pass pass = new Pass(sequences);
    MemorySegment queryGate = Data.bf16(pass.queryGate);
    MemorySegment table = Data.ints(pass.table);
    MemorySegment query = Data.poisonedBf16(pass.rows * heads * dim);
    proof.dispatch(
        "attention_prepare",
        Geometry.of(Math.ceilDiv(heads + KV_HEADS, 8), pass.rows, 1, 256),
        queryGate,
        Data.bf16(pass.key),
        Data.bf16(pass.value),
        Data.f32(queryGain),
        Data.f32(keyGain),
        turns(),
        Data.ints(pass.positions),
        Data.ints(pass.sequenceOf),
        table,
        pass.pages,
        query,
        pass.parameters());
    pass.checkAppended("attention_prepare");
    checkQueries(pass, Data.readBf16(query));
    int most = Arrays.stream(sequences).mapToInt(Sequence::rows).max().orElseThrow();
    int[] wanted = proof.sample(pass.rows, 40);
    double[] expected = pass.expected(wanted);
    for (String kernel : new String[] {"attention_prefill_d" + dim, "attention_tensor_d" + dim}) {
      MemorySegment y = Data.poisonedBf16(pass.rows * heads * dim);
      proof.dispatch(
          kernel,
          Geometry.of(Math.ceilDiv(most * packed, 32), KV_HEADS, sequences.length, 128),
          query,
          queryGate,
          pass.list(),
          table,
          pass.pages,
          y,
          pass.parameters());
      float[] all = Data.readBf16(y);
      proof.checkWritten(kernel, all);
      float[] actual = new float[wanted.length * heads * dim];
      for (int i = 0; i < wanted.length; i++) {
        System.arraycopy(all, wanted[i] * heads * dim, actual, i * heads * dim, heads * dim);
      }
      proof.check(kernel, pass.shape(), actual, expected, Proof.BF16_TWICE);
    }
  }

  /** Queries are [kv_heads, rows, packed, dim]. */
  private void checkQueries(Pass pass, float[] query) {
    double[] expected = new double[query.length];
    for (int row = 0; row < pass.rows; row++) {
      for (int head = 0; head < heads; head++) {
        int to = ((head / packed * pass.rows + row) * packed + head % packed) * dim;
        System.arraycopy(pass.query(row, head), 0, expected, to, dim);
      }
    }
    proof.check("attention_prepare", pass.shape() + ", queries", query, expected, Proof.BF16);
  }
}
