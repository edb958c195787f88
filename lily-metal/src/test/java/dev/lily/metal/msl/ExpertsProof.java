package dev.lily.metal.msl;

import dev.lily.metal.msl.CpuKernels.Geometry;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.stream.IntStream;

/** The 35B's experts: 8 of 256 and a shared one, 2048 wide, 512 inside, 4 bits. */
final class ExpertsProof {
  private static final int MOST_ASSIGNMENTS = 96; // checked of a pass
  private static final int TILE_ROWS = 64;

  private final Proof proof;
  private final int hidden;
  private final int inner;
  private final int experts;
  private final int k;
  private final AffineMatrix gate;
  private final AffineMatrix up;
  private final AffineMatrix down;
  private final AffineMatrix sharedGate;
  private final AffineMatrix sharedUp;
  private final AffineMatrix sharedDown;

  ExpertsProof(Proof proof) {
    this.proof = proof;
    hidden = proof.pick(128, 2048, 2048);
    inner = proof.pick(64, 512, 512);
    experts = proof.pick(9, 24, 256);
    k = proof.pick(3, 8, 8);
    gate = AffineMatrix.random(proof, 4, (long) experts * inner, hidden);
    up = AffineMatrix.random(proof, 4, (long) experts * inner, hidden);
    down = AffineMatrix.random(proof, 4, (long) experts * hidden, inner);
    sharedGate = AffineMatrix.random(proof, 4, inner, hidden);
    sharedUp = AffineMatrix.random(proof, 4, inner, hidden);
    sharedDown = AffineMatrix.random(proof, 4, hidden, inner);
  }

  void run() {
    decode(1);
    decode(proof.pick(2, 3, 4));
    prefill(proof.pick(12, 40, 512));
    if (!proof.isSmoke()) {
      prefill(proof.pick(0, 70, 2048));
    }
  }

  /** The likeliest experts of a row, and the softmax over them. */
  private record Choice(int[] chosen, double[] weights) {}

  private Choice[] choose(float[] logits, int rows) {
    return IntStream.range(0, rows)
        .mapToObj(
            row -> {
              int[] chosen =
                  IntStream.range(0, experts)
                      .boxed()
                      .sorted(
                          (a, b) ->
                              Float.compare(logits[row * experts + b], logits[row * experts + a]))
                      .mapToInt(e -> e)
                      .limit(k)
                      .toArray();
              double[] weights =
                  Arrays.stream(chosen)
                      .mapToDouble(e -> Math.exp(logits[row * experts + e]))
                      .toArray();
              double sum = Arrays.stream(weights).sum();
              return new Choice(chosen, Arrays.stream(weights).map(w -> w / sum).toArray());
            })
        .toArray(Choice[]::new);
  }

  private void checkChoice(String kernel, Choice[] choices, int[] chosen, float[] weights) {
    double[] expected =
        Arrays.stream(choices).flatMapToDouble(c -> Arrays.stream(c.weights())).toArray();
    int[] expectedChosen =
        Arrays.stream(choices).flatMapToInt(c -> Arrays.stream(c.chosen())).toArray();
    String shape = choices.length + " rows, " + k + " of " + experts;
    proof.checkExact(kernel, shape, Arrays.equals(chosen, expectedChosen));
    proof.check(kernel, shape + ", weights", weights, expected, Proof.FP32);
  }

  /** silu(gate x) * up x of one expert. */
  private static double[] expanded(
      AffineMatrix gate, AffineMatrix up, long base, int outputs, float[] n, int row) {
    int[] all = IntStream.range(0, outputs).toArray();
    double[] g = gate.multiply(n, new int[] {row}, base, all);
    double[] u = up.multiply(n, new int[] {row}, base, all);
    for (int i = 0; i < outputs; i++) {
      g[i] = g[i] / (1 + Math.exp(-g[i])) * u[i];
    }
    return g;
  }

  private static double sigmoid(double x) {
    return 1 / (1 + Math.exp(-x));
  }

  private void decode(int rows) {
    float[] n = proof.uniformBf16(rows * hidden, -2, 2);
    float[] logits = proof.uniform(rows * experts, -3, 3);
    float[] sharedLogit = proof.uniform(rows, -2, 2);
    int actWidth = (k + 1) * inner;
    MemorySegment act = Data.poisonedBf16(rows * actWidth);
    MemorySegment chosen = Data.poisoned(4L * rows * k);
    MemorySegment weights = Data.poisonedF32(rows * k);
    MemorySegment out = Data.poisonedBf16(rows * hidden);
    MemorySegment parameters =
        Data.struct(hidden, inner, inner, experts, k, AffineMatrix.GROUP, inner, inner, hidden);
    proof.dispatch(
        "experts_expand_q4",
        Geometry.of(Math.ceilDiv(inner, 16), k + 1, rows, 256),
        gate.codes(),
        gate.scales(),
        gate.biases(),
        up.codes(),
        up.scales(),
        up.biases(),
        sharedGate.codes(),
        sharedGate.scales(),
        sharedGate.biases(),
        sharedUp.codes(),
        sharedUp.scales(),
        sharedUp.biases(),
        Data.f32(logits),
        Data.bf16(n),
        act,
        chosen,
        weights,
        parameters);
    Choice[] choices = choose(logits, rows);
    checkChoice("experts_expand_q4", choices, Data.readInts(chosen), Data.readF32(weights));
    double[] expectedAct = new double[rows * actWidth];
    for (int row = 0; row < rows; row++) {
      for (int slot = 0; slot <= k; slot++) {
        double[] part =
            slot == k
                ? expanded(sharedGate, sharedUp, 0, inner, n, row)
                : expanded(gate, up, (long) choices[row].chosen()[slot] * inner, inner, n, row);
        System.arraycopy(part, 0, expectedAct, row * actWidth + slot * inner, inner);
      }
    }
    String shape = rows + " x (" + k + "+1) x " + inner;
    proof.check("experts_expand_q4", shape, Data.readBf16(act), expectedAct, Proof.BF16);

    proof.dispatch(
        "experts_contract_q4",
        Geometry.of(Math.ceilDiv(hidden, 16), rows, 1, 256)
            .withThreadgroupBytes(Math.ceilDiv(actWidth * 9 / 4, 16) * 16),
        down.codes(),
        down.scales(),
        down.biases(),
        sharedDown.codes(),
        sharedDown.scales(),
        sharedDown.biases(),
        act,
        chosen,
        weights,
        Data.f32(sharedLogit),
        out,
        parameters);
    float[] given = Data.readBf16(act);
    int[] all = IntStream.range(0, hidden).toArray();
    double[] expected = new double[rows * hidden];
    for (int row = 0; row < rows; row++) {
      for (int slot = 0; slot <= k; slot++) {
        int[] at = {row * (k + 1) + slot};
        double[] part =
            slot == k
                ? sharedDown.multiply(given, at, 0, all)
                : down.multiply(given, at, (long) choices[row].chosen()[slot] * hidden, all);
        double weight = slot == k ? sigmoid(sharedLogit[row]) : choices[row].weights()[slot];
        for (int c = 0; c < hidden; c++) {
          expected[row * hidden + c] += weight * part[c];
        }
      }
    }
    proof.check(
        "experts_contract_q4", rows + " x " + hidden, Data.readBf16(out), expected, Proof.BF16);
  }

  private void prefill(int rows) {
    float[] logits = proof.uniform(rows * experts, -3, 3);
    int assignments = rows * k;
    MemorySegment chosen = Data.poisoned(4L * assignments);
    MemorySegment weights = Data.poisonedF32(assignments);
    MemorySegment offsets = Data.poisoned(4L * (experts + 1));
    MemorySegment tiles = Data.poisoned(4L * (experts + 1));
    MemorySegment order = Data.poisoned(4L * assignments);
    MemorySegment route = Data.struct(experts, k, assignments);
    proof.dispatch(
        "experts_route", Geometry.of(rows, 256), Data.f32(logits), chosen, weights, route);
    Choice[] choices = choose(logits, rows);
    checkChoice("experts_route", choices, Data.readInts(chosen), Data.readF32(weights));
    proof.dispatch("experts_group", Geometry.of(1, 1024), chosen, offsets, tiles, order, route);
    checkGroups(
        Data.readInts(chosen), Data.readInts(offsets), Data.readInts(tiles), Data.readInts(order));

    float[] n = proof.uniformBf16(rows * hidden, -2, 2);
    MemorySegment input = Data.bf16(n);
    int mostTiles = Math.ceilDiv(assignments, TILE_ROWS) + Math.min(experts, assignments);
    int mostSharedTiles = Math.ceilDiv(rows, TILE_ROWS);
    int[] chosenExperts = Data.readInts(chosen);
    int[] places = Data.readInts(order);
    MemorySegment none = Data.unused();
    for (String kind : new String[] {"tiles", "tensor"}) {
      MemorySegment act = Data.poisonedBf16(assignments * inner);
      MemorySegment sharedAct = Data.poisonedBf16(rows * inner);
      MemorySegment contributions = Data.poisonedBf16(assignments * hidden);
      MemorySegment shared = Data.poisonedBf16(rows * hidden);
      String expand = "experts_expand_" + kind + "_q4";
      expandTiles(
          expand,
          gate,
          up,
          input,
          offsets,
          tiles,
          order,
          act,
          mostTiles,
          Data.struct(hidden, AffineMatrix.GROUP, inner, assignments, experts, k, inner, inner));
      expandTiles(
          expand,
          sharedGate,
          sharedUp,
          input,
          none,
          none,
          none,
          sharedAct,
          mostSharedTiles,
          Data.struct(hidden, AffineMatrix.GROUP, inner, rows, 0, 1, 0, 0));
      checkExpanded(expand, n, chosenExperts, places, Data.readBf16(act));
      checkSharedExpanded(expand, n, rows, Data.readBf16(sharedAct));
      String contract = "experts_contract_" + kind + "_q4";
      contractTiles(
          contract,
          down,
          act,
          offsets,
          tiles,
          order,
          contributions,
          mostTiles,
          Data.struct(inner, AffineMatrix.GROUP, hidden, assignments, experts, k, hidden, 0));
      contractTiles(
          contract,
          sharedDown,
          sharedAct,
          none,
          none,
          none,
          shared,
          mostSharedTiles,
          Data.struct(inner, AffineMatrix.GROUP, hidden, rows, 0, 1, 0, 0));
      checkContracted(
          contract, Data.readBf16(act), chosenExperts, places, Data.readBf16(contributions));
      checkSharedContracted(contract, Data.readBf16(sharedAct), rows, Data.readBf16(shared));
      combine(rows, contributions, weights, shared);
    }
  }

  private void expandTiles(
      String kernel,
      AffineMatrix gates,
      AffineMatrix ups,
      MemorySegment n,
      MemorySegment offsets,
      MemorySegment tiles,
      MemorySegment order,
      MemorySegment act,
      int mostTiles,
      MemorySegment parameters) {
    proof.dispatch(
        kernel,
        Geometry.of(Math.ceilDiv(inner, 32), mostTiles, 1, 128),
        gates.codes(),
        gates.scales(),
        gates.biases(),
        ups.codes(),
        ups.scales(),
        ups.biases(),
        n,
        offsets,
        tiles,
        order,
        act,
        parameters);
  }

  private void contractTiles(
      String kernel,
      AffineMatrix downs,
      MemorySegment act,
      MemorySegment offsets,
      MemorySegment tiles,
      MemorySegment order,
      MemorySegment contributions,
      int mostTiles,
      MemorySegment parameters) {
    proof.dispatch(
        kernel,
        Geometry.of(Math.ceilDiv(hidden, 64), mostTiles, 1, 128),
        downs.codes(),
        downs.scales(),
        downs.biases(),
        act,
        offsets,
        tiles,
        order,
        contributions,
        parameters);
  }

  /** Each assignment once, among those of its expert, at the tiles its expert begins with. */
  private void checkGroups(int[] chosen, int[] offsets, int[] tiles, int[] order) {
    int[] counts = new int[experts];
    for (int expert : chosen) {
      counts[expert]++;
    }
    boolean right = offsets[0] == 0 && tiles[0] == 0;
    for (int e = 0; e < experts; e++) {
      right &= offsets[e + 1] - offsets[e] == counts[e];
      right &= tiles[e + 1] - tiles[e] == Math.ceilDiv(counts[e], TILE_ROWS);
      for (int i = offsets[e]; right && i < offsets[e + 1]; i++) {
        right &= chosen[order[i]] == e;
      }
    }
    right &=
        Arrays.equals(
            Arrays.stream(order).sorted().toArray(), IntStream.range(0, order.length).toArray());
    proof.checkExact("experts_group", chosen.length + " over " + experts, right);
  }

  private void checkExpanded(String kernel, float[] n, int[] chosen, int[] order, float[] act) {
    proof.checkWritten(kernel, act);
    int[] places = proof.sample(order.length, MOST_ASSIGNMENTS);
    float[] actual = new float[places.length * inner];
    double[] expected = new double[actual.length];
    for (int i = 0; i < places.length; i++) {
      int a = order[places[i]];
      double[] part = expanded(gate, up, (long) chosen[a] * inner, inner, n, a / k);
      System.arraycopy(part, 0, expected, i * inner, inner);
      System.arraycopy(act, places[i] * inner, actual, i * inner, inner);
    }
    String shape = order.length + " x " + inner + " x " + hidden;
    proof.check(kernel, shape, actual, expected, 2 * Proof.BF16);
  }

  private void checkSharedExpanded(String kernel, float[] n, int rows, float[] act) {
    proof.checkWritten(kernel, act);
    int[] some = proof.sample(rows, MOST_ASSIGNMENTS);
    float[] actual = new float[some.length * inner];
    double[] expected = new double[actual.length];
    for (int i = 0; i < some.length; i++) {
      double[] part = expanded(sharedGate, sharedUp, 0, inner, n, some[i]);
      System.arraycopy(part, 0, expected, i * inner, inner);
      System.arraycopy(act, some[i] * inner, actual, i * inner, inner);
    }
    String shape = "shared, " + rows + " x " + inner + " x " + hidden;
    proof.check(kernel, shape, actual, expected, 2 * Proof.BF16);
  }

  private void checkContracted(
      String kernel, float[] act, int[] chosen, int[] order, float[] contributions) {
    proof.checkWritten(kernel, contributions);
    int[] places = proof.sample(order.length, MOST_ASSIGNMENTS);
    int[] all = IntStream.range(0, hidden).toArray();
    float[] actual = new float[places.length * hidden];
    double[] expected = new double[actual.length];
    for (int i = 0; i < places.length; i++) {
      int a = order[places[i]];
      double[] part = down.multiply(act, new int[] {places[i]}, (long) chosen[a] * hidden, all);
      System.arraycopy(part, 0, expected, i * hidden, hidden);
      System.arraycopy(contributions, a * hidden, actual, i * hidden, hidden);
    }
    String shape = order.length + " x " + hidden + " x " + inner;
    proof.check(kernel, shape, actual, expected, Proof.BF16_TWICE);
  }

  private void checkSharedContracted(String kernel, float[] act, int rows, float[] shared) {
    proof.checkWritten(kernel, shared);
    int[] some = proof.sample(rows, MOST_ASSIGNMENTS);
    int[] all = IntStream.range(0, hidden).toArray();
    float[] actual = new float[some.length * hidden];
    for (int i = 0; i < some.length; i++) {
      System.arraycopy(shared, some[i] * hidden, actual, i * hidden, hidden);
    }
    String shape = "shared, " + rows + " x " + hidden + " x " + inner;
    proof.check(kernel, shape, actual, sharedDown.multiply(act, some, 0, all), Proof.BF16_TWICE);
  }

  private void combine(
      int rows, MemorySegment contributions, MemorySegment weights, MemorySegment shared) {
    float[] sharedLogit = proof.uniform(rows, -2, 2);
    MemorySegment out = Data.poisonedBf16(rows * hidden);
    proof.dispatch(
        "experts_combine",
        Geometry.of(Math.ceilDiv(hidden, 256), rows, 1, 256),
        contributions,
        weights,
        shared,
        Data.f32(sharedLogit),
        out,
        Data.struct(hidden, k));
    float[] parts = Data.readBf16(contributions);
    float[] given = Data.readF32(weights);
    float[] last = Data.readBf16(shared);
    double[] expected = new double[rows * hidden];
    for (int i = 0; i < expected.length; i++) {
      int row = i / hidden;
      for (int rank = 0; rank < k; rank++) {
        expected[i] +=
            (double) given[row * k + rank] * parts[(row * k + rank) * hidden + i % hidden];
      }
      expected[i] += sigmoid(sharedLogit[row]) * last[i];
    }
    proof.check("experts_combine", rows + " x " + hidden, Data.readBf16(out), expected, Proof.BF16);
  }
}
