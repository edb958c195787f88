package dev.lily.metal.replay;

import dev.lily.metal.replay.Trace.Dispatch;

/**
 * The least that a dispatch must do: bytes to and from memory, each input once and each output
 * once, and floating-point operations of its products.
 *
 * @param weights bytes of matrices, of the chosen experts only
 * @param states bytes of recurrent states and convolution windows, read and written
 * @param cache bytes of keys and values
 * @param other bytes of activations and constants
 * @param flops of matrix products and attention; 2 for a multiplication and addition
 */
public record Traffic(long weights, long states, long cache, long other, long flops) {
  static final Traffic NONE = new Traffic(0, 0, 0, 0, 0);

  private static final int BF16 = 2;
  private static final int F32 = 4;

  public long bytes() {
    return weights + states + cache + other;
  }

  public Traffic plus(Traffic t) {
    return new Traffic(
        weights + t.weights, states + t.states, cache + t.cache, other + t.other, flops + t.flops);
  }

  private static Traffic other(long bytes) {
    return new Traffic(0, 0, 0, bytes, 0);
  }

  /** Of all dispatches of a trace. */
  public static Traffic of(Trace trace) {
    return trace.dispatches().stream()
        .map(dispatch -> of(trace, dispatch))
        .reduce(NONE, Traffic::plus);
  }

  /**
   * Of one dispatch.
   *
   * @throws IllegalArgumentException if it runs a kernel that is not known here
   */
  public static Traffic of(Trace trace, Dispatch d) {
    String kernel = d.kernel();
    String family = kernel.replaceFirst("_(q4|q8|bf16|f32|k128|k256|d64|d128|d256)(_.*)?$", "");
    return switch (family) {
      case "embed" -> embed(d);
      case "gather_rows" -> other(d.groups()[1] * d.parameter(0) * (F32 + BF16 + F32));
      case "add_norm" -> addNorm(d.groups()[0], d.parameter(0), d.parameter(1) != 0);
      case "matvec" -> matvec(d, d.parameter(6));
      case "norm_matvec" ->
          matvec(d, 1)
              .plus(addNorm(1, d.parameter(0), d.parameter(7) != 0))
              .plus(other(-(long) d.parameter(0) * BF16)); // the norm stays on the chip
      case "gemm", "gemm_tensor" -> gemm(d);
      case "delta_step" -> deltaStep(d);
      case "delta_mix" -> deltaMix(d);
      case "delta_scan" -> deltaScan(trace, d);
      case "delta_norm" -> deltaNorm(d);
      case "attention_prepare" -> attentionPrepare(d);
      case "attention_decode" -> attentionDecode(trace, d);
      case "attention_merge" -> attentionMerge(trace, d);
      case "attention_prefill", "attention_tensor" -> attentionPrefill(trace, d);
      case "experts_expand" -> expertsExpand(d);
      case "experts_contract" -> expertsContract(d);
      case "experts_route" -> other(d.groups()[0] * (d.parameter(0) + 2L * d.parameter(1)) * F32);
      case "experts_group" -> other((2L * d.parameter(2) + 2L * (d.parameter(0) + 1)) * F32);
      case "experts_expand_tiles", "experts_expand_tensor" -> expertsExpandTiles(d);
      case "experts_contract_tiles", "experts_contract_tensor" -> expertsContractTiles(d);
      case "experts_combine" -> expertsCombine(d);
      case "sample_candidates" -> sampleCandidates(trace, d);
      case "sample_choose" -> other(d.groups()[0] * d.parameter(1) * F32);
      default ->
          throw new IllegalArgumentException(
              "What '" + kernel + "' must move is not known; add it to Traffic");
    };
  }

  /** Bytes of a matrix, and so of some rows of it. */
  static long matrixBytes(String kernel, long rows, long columns, long groupSize) {
    if (kernel.contains("_q4")) {
      return rows * (columns / 2 + columns / groupSize * 2 * BF16);
    }
    if (kernel.contains("_q8")) {
      return rows * (columns + columns / groupSize * 2 * BF16);
    }
    return rows
        * columns
        * (kernel.matches(".*(matvec|gemm|embed|expand|contract|tiles)_f32.*") ? F32 : BF16);
  }

  private static long outputBytes(String kernel) {
    return kernel.matches(".*_f32(_[om]\\d+.*)?$") ? F32 : BF16;
  }

  private static Traffic embed(Dispatch d) {
    long rows = d.groups()[1];
    long columns = d.parameter(0);
    long weights = matrixBytes(d.kernel(), rows, columns, d.parameter(1));
    return new Traffic(weights, 0, 0, rows * columns * F32, 0);
  }

  private static Traffic addNorm(long rows, long columns, boolean hasBranch) {
    long ofRow = columns * (F32 + F32 + BF16 + (hasBranch ? BF16 : 0));
    return other(rows * ofRow + columns * F32);
  }

  private static Traffic matvec(Dispatch d, long rows) {
    long columns = d.parameter(0);
    long outputs = 0;
    for (int m = 0; m < 4; m++) {
      outputs += d.parameter(2 + m);
    }
    return product(d.kernel(), rows, outputs, columns, d.parameter(1));
  }

  private static Traffic gemm(Dispatch d) {
    return product(d.kernel(), d.parameter(3), d.parameter(2), d.parameter(0), d.parameter(1));
  }

  private static Traffic product(
      String kernel, long rows, long outputs, long columns, long groupSize) {
    return new Traffic(
        matrixBytes(kernel, outputs, columns, groupSize),
        0,
        0,
        rows * (columns * BF16 + outputs * outputBytes(kernel)),
        2 * rows * outputs * columns);
  }

  /** The fields of the parameters of the delta kernels. */
  private record Delta(long keyHeads, long valueHeads, long keyDim, long valueDim, long taps) {
    static Delta of(Dispatch d) {
      return new Delta(
          d.parameter(0), d.parameter(1), d.parameter(2), d.parameter(3), d.parameter(4));
    }

    long channels() {
      return 2 * keyHeads * keyDim + valueHeads * valueDim;
    }

    long values() {
      return valueHeads * valueDim;
    }

    long stateBytes() {
      return values() * keyDim * F32;
    }

    long windowBytes() {
      return valueHeads * (taps - 1) * (2 * keyDim + valueDim) * BF16;
    }

    long constantBytes() {
      return (channels() * taps + 2 * valueHeads) * F32;
    }
  }

  private static Traffic deltaStep(Dispatch d) {
    Delta p = Delta.of(d);
    long rows = d.groups()[1];
    long states = 2 * rows * (p.stateBytes() + p.windowBytes());
    long ofRow = (p.channels() + 2 * p.values() + 2 * p.valueHeads) * BF16;
    return new Traffic(0, states, 0, rows * ofRow + p.constantBytes() + p.valueDim * F32, 0);
  }

  private static Traffic deltaMix(Dispatch d) {
    Delta p = Delta.of(d);
    long ofRow = (p.channels() + 2 * p.valueHeads) * BF16 + (p.channels() + 2 * p.valueHeads) * F32;
    return new Traffic(0, p.windowBytes(), 0, d.groups()[1] * ofRow + p.constantBytes(), 0);
  }

  private static Traffic deltaScan(Trace trace, Dispatch d) {
    Delta p = Delta.of(d);
    long rows = 0;
    for (int s = 0; s < d.groups()[2]; s++) {
      rows += trace.word(d.bindings().get(2), 4 * s + 1).orElseThrow();
    }
    long ofRow = (p.channels() + 2 * p.valueHeads + p.values()) * F32;
    return new Traffic(
        0, 2 * d.groups()[2] * p.stateBytes(), 0, rows * ofRow, rows * p.values() * p.keyDim * 7);
  }

  private static Traffic deltaNorm(Dispatch d) {
    Delta p = Delta.of(d);
    long ofRow = p.values() * (F32 + 2 * BF16);
    return new Traffic(0, p.windowBytes(), 0, d.groups()[1] * ofRow + p.valueDim * F32, 0);
  }

  /** The fields of the parameters of the attention kernels. */
  private record Attention(long heads, long keyHeads, long dim) {
    static Attention of(Dispatch d) {
      return new Attention(d.parameter(0), d.parameter(1), d.parameter(2));
    }

    /** A token's key and value. */
    long tokenBytes() {
      return 2 * keyHeads * dim * BF16;
    }
  }

  private static Traffic attentionPrepare(Dispatch d) {
    Attention p = Attention.of(d);
    long rows = d.groups()[1];
    long ofRow = 2 * p.heads * p.dim * BF16 + p.tokenBytes();
    return new Traffic(0, 0, rows * p.tokenBytes(), rows * ofRow, 0);
  }

  private static Traffic attentionDecode(Trace trace, Dispatch d) {
    Attention p = Attention.of(d);
    long cache = 0;
    long other = 0;
    long flops = 0;
    for (int row = 0; row < d.groups()[2]; row++) {
      long tokens = trace.word(d.bindings().get(6), row).orElseThrow() + 1L;
      cache += tokens * p.tokenBytes();
      other += p.heads * p.dim * BF16 + p.tokenBytes();
      other += splits(tokens) * p.heads * (p.dim + 2) * F32;
      flops += 4 * p.heads * p.dim * tokens;
    }
    return new Traffic(0, 0, cache, other, flops);
  }

  /** Splits of a row's tokens: at most 64, of whole tiles of 64 tokens. */
  private static long splits(long tokens) {
    long tiles = Math.ceilDiv(tokens, 64L);
    return Math.ceilDiv(tiles, Math.ceilDiv(tiles, 64L));
  }

  private static Traffic attentionMerge(Trace trace, Dispatch d) {
    Attention p = Attention.of(d);
    long other = 0;
    for (int row = 0; row < d.groups()[1]; row++) {
      long tokens = trace.word(d.bindings().get(3), row).orElseThrow() + 1L;
      other += splits(tokens) * p.heads * (p.dim + 2) * F32 + 2 * p.heads * p.dim * BF16;
    }
    return other(other);
  }

  private static Traffic attentionPrefill(Trace trace, Dispatch d) {
    Attention p = Attention.of(d);
    long cache = 0;
    long rows = 0;
    long flops = 0;
    for (int s = 0; s < d.groups()[2]; s++) {
      long count = trace.word(d.bindings().get(2), 4 * s + 1).orElseThrow();
      long position = trace.word(d.bindings().get(2), 4 * s + 3).orElseThrow();
      cache += (position + count) * p.tokenBytes();
      rows += count;
      flops += 4 * p.heads * p.dim * (count * position + count * (count + 1) / 2);
    }
    return new Traffic(0, 0, cache, rows * 3 * p.heads * p.dim * BF16, flops);
  }

  private static Traffic expertsExpand(Dispatch d) {
    long hidden = d.parameter(0);
    long intermediate = d.parameter(1);
    long shared = d.parameter(2);
    long rows = d.groups()[2];
    long perToken = d.parameter(4);
    long used = Math.min(d.parameter(3), rows * perToken);
    long outputs = 2 * (used * intermediate + shared);
    long ofRow =
        d.parameter(3) * F32
            + (hidden + perToken * intermediate + shared) * BF16
            + 2 * perToken * F32;
    return new Traffic(
        matrixBytes(d.kernel(), outputs, hidden, d.parameter(5)),
        0,
        0,
        rows * ofRow,
        4 * rows * (perToken * intermediate + shared) * hidden);
  }

  private static Traffic expertsContract(Dispatch d) {
    long hidden = d.parameter(0);
    long intermediate = d.parameter(1);
    long shared = d.parameter(2);
    long rows = d.groups()[1];
    long perToken = d.parameter(4);
    long used = Math.min(d.parameter(3), rows * perToken);
    long ofRow = (perToken * intermediate + shared + hidden) * BF16 + (2 * perToken + 1) * F32;
    return new Traffic(
        matrixBytes(d.kernel(), used * hidden, intermediate, d.parameter(5))
            + matrixBytes(d.kernel(), hidden, shared, d.parameter(5)),
        0,
        0,
        rows * ofRow,
        2 * rows * (perToken * intermediate + shared) * hidden);
  }

  private static Traffic expertsExpandTiles(Dispatch d) {
    long columns = d.parameter(0);
    long outputs = d.parameter(2);
    long assignments = d.parameter(3);
    long rows = assignments / d.parameter(5);
    return new Traffic(
        matrixBytes(d.kernel(), 2 * usedExperts(d) * outputs, columns, d.parameter(1)),
        0,
        0,
        rows * columns * BF16 + assignments * outputs * BF16,
        4 * assignments * outputs * columns);
  }

  private static Traffic expertsContractTiles(Dispatch d) {
    long columns = d.parameter(0);
    long outputs = d.parameter(2);
    long assignments = d.parameter(3);
    return new Traffic(
        matrixBytes(d.kernel(), usedExperts(d) * outputs, columns, d.parameter(1)),
        0,
        0,
        assignments * (columns + outputs) * BF16,
        2 * assignments * outputs * columns);
  }

  /** Experts that the tiles read, if the router spreads its choices. */
  private static long usedExperts(Dispatch d) {
    return d.parameter(4) == 0 ? 1 : Math.min(d.parameter(4), d.parameter(3));
  }

  private static Traffic expertsCombine(Dispatch d) {
    long hidden = d.parameter(0);
    long perToken = d.parameter(1);
    return other(d.groups()[1] * ((perToken + 2) * hidden * BF16 + (perToken + 1) * F32));
  }

  /** Logits, the counts where penalties need them, and a list of at most {@code top_k} a block. */
  private static Traffic sampleCandidates(Trace trace, Dispatch d) {
    long vocabulary = d.parameter(0);
    long blocks = d.parameter(1);
    long bytes = 0;
    for (int row = 0; row < d.groups()[1]; row++) {
      int slot = 16 * trace.word(d.bindings().get(1), 2 * row + 1).orElseThrow();
      long topK = trace.word(d.bindings().get(2), slot + 5).orElseThrow();
      boolean hasPenalties = trace.word(d.bindings().get(2), slot + 12).orElseThrow() != 0;
      long listed = topK == 0 || topK > 256 ? vocabulary : topK * blocks;
      bytes += vocabulary * (hasPenalties ? 2 : 1) * F32 + listed * 2 * F32 + blocks * F32;
    }
    return other(bytes);
  }
}
