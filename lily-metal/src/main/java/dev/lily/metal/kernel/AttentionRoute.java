package dev.lily.metal.kernel;

import java.util.List;

/** Which attention kernel fits a shape: pure functions. */
final class AttentionRoute {
  static final int MAX_HEAD_DIM = 256;

  /** Tokens of a tile of decode attention. */
  static final int TILE_TOKENS = 64;

  /** Most splits of a row's tokens. */
  static final int MAX_SPLITS = 64;

  /** Query heads that decode attention takes at a time. */
  static final int HEADS_PER_BLOCK = 8;

  /** Head dimensions that the prefill kernels are made for. */
  static final List<Integer> PREFILL_WIDTHS = List.of(64, 128, 256);

  static final List<String> NAMES =
      List.of(
          "attention_prepare",
          "attention_decode",
          "attention_decode_d256",
          "attention_merge",
          "attention_plain",
          prefillName(64),
          prefillName(128),
          prefillName(256));

  /** Of the kernels of {@code attention_tensor.metal}. */
  static final List<String> TENSOR_NAMES =
      List.of(tensorName(64), tensorName(128), tensorName(256));

  /** Tokens of which pages are whole multiples where prefill reads them as tensors. */
  private static final int TENSOR_PAGE_TOKENS = 32;

  private AttentionRoute() {}

  /** Whether decode attention reads pages of this shape by whole 8 x 8 blocks. */
  static boolean isTiled(int headDim, int pageTokens) {
    return headDim % 8 == 0 && pageTokens % 8 == 0;
  }

  /** Index in {@link #PREFILL_WIDTHS} of the least width that holds a head. */
  static int prefill(int headDim) {
    return headDim <= 64 ? 0 : headDim <= 128 ? 1 : 2;
  }

  /** Whether prefill goes through tensor operations on a device that has them. */
  static boolean isTensor(int headDim, int pageTokens) {
    return PREFILL_WIDTHS.contains(headDim) && pageTokens % TENSOR_PAGE_TOKENS == 0;
  }

  static String tensorName(int width) {
    return "attention_tensor_d" + width;
  }

  static String prefillName(int width) {
    return "attention_prefill_d" + width;
  }

  /** Threadgroups over the tokens of the longest row. */
  static int splits(int tokens) {
    return Math.min(MAX_SPLITS, KernelEncoder.ceilDiv(tokens, TILE_TOKENS));
  }

  /** Threadgroups over the query heads of a KV head. */
  static int blocks(int numHeads, int numKeyValueHeads) {
    return KernelEncoder.ceilDiv(numHeads / numKeyValueHeads, HEADS_PER_BLOCK);
  }
}
