package dev.lily.engine;

import dev.lily.engine.model.qwen35moe.Qwen35Config;
import java.util.List;
import java.util.stream.IntStream;

/** The published 4-bit checkpoint of Qwen3.6-35B-A3B in numbers, for plans of its memory. */
public final class Published35b {
  public static final Qwen35Config CONFIG =
      new Qwen35Config(
          2048,
          40,
          248_320,
          1e-6f,
          262_144,
          16,
          2,
          256,
          64,
          1e7,
          IntStream.range(0, 40).mapToObj(layer -> layer % 4 == 3).toList(),
          16,
          32,
          128,
          128,
          4,
          256,
          8,
          512,
          512,
          List.of());
  public static final int VOCABULARY = 248_077;

  /** bf16; lies in the same files as the text weights of the published 4-bit checkpoint. */
  private static final long VISION_TOWER_BYTES = 893_142_496;

  private Published35b() {}

  /** Bytes of the text weights in 4 bits, router and shared expert's gate in 8. */
  public static long weightBytes() {
    long hidden = CONFIG.hiddenSize();
    long attention =
        quantized(4, 2L * CONFIG.attentionDim(), hidden)
            + 2 * quantized(4, CONFIG.keyValueDim(), hidden)
            + quantized(4, hidden, CONFIG.attentionDim())
            + dense(2L * CONFIG.headDim());
    long heads = CONFIG.linearNumValueHeads();
    long delta =
        quantized(4, CONFIG.convDim(), hidden)
            + quantized(4, CONFIG.valueDim(), hidden)
            + 2 * quantized(4, heads, hidden)
            + quantized(4, hidden, CONFIG.valueDim())
            + dense((long) CONFIG.convDim() * CONFIG.linearConvKernelDim())
            + dense(2 * heads + CONFIG.linearValueHeadDim());
    long width = CONFIG.moeIntermediateSize();
    long sharedWidth = CONFIG.sharedExpertIntermediateSize();
    long experts =
        quantized(8, CONFIG.numExperts() + 1L, hidden)
            + 3 * quantized(4, CONFIG.numExperts() * width, hidden)
            + 3 * quantized(4, sharedWidth, hidden);
    return 2 * quantized(4, CONFIG.vocabSize(), hidden)
        + dense(hidden)
        + CONFIG.numHiddenLayers() * (experts + dense(2 * hidden))
        + CONFIG.numAttentionLayers() * attention
        + CONFIG.numDeltaLayers() * delta;
  }

  /** Bytes of all tensors of the published checkpoint: Metal counts its files whole. */
  public static long fileBytes() {
    return weightBytes() + VISION_TOWER_BYTES;
  }

  /** Codes, and a bf16 scale and bias for each 64 of them. */
  private static long quantized(int bits, long rows, long columns) {
    return rows * columns * bits / 8 + rows * columns / 64 * 4;
  }

  private static long dense(long elements) {
    return 2 * elements;
  }
}
