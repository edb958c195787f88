package dev.lily.engine.checkpoint;

/**
 * Quantises fp32 values as MLX does ({@code affine} mode), for conversions and for tests that need
 * quantised weights. The end of a group with the larger magnitude becomes exact, so that a group
 * that spans zero can represent zero; codes follow from the fp32 scale and bias, before these are
 * rounded to bf16. Halves round away from zero, as in MLX's Metal kernel. Unlike that kernel, whose
 * running maximum starts at zero, a group of negative values only uses its true maximum.
 */
public final class AffineQuantizer {
  private static final float SMALLEST_SCALE = 1e-7f;

  private AffineQuantizer() {}

  /**
   * Quantises rows whose length is a multiple of the group size.
   *
   * @param values row-major values, finite
   * @param groupSize 32, 64 or 128
   * @param bits 4 or 8
   * @throws IllegalArgumentException on another format, a partial group or a value that is not
   *     finite
   */
  public static AffineGroups quantize(float[] values, int groupSize, int bits) {
    requireFormat(bits, groupSize);
    if (values.length % groupSize != 0) {
      throw new IllegalArgumentException(
          "%d values do not fill groups of %d".formatted(values.length, groupSize));
    }
    int perWord = 32 / bits;
    int numGroups = values.length / groupSize;
    int[] words = new int[values.length / perWord];
    short[] scales = new short[numGroups];
    short[] biases = new short[numGroups];
    int largestCode = (1 << bits) - 1;
    for (int group = 0; group < numGroups; group++) {
      int begin = group * groupSize;
      float low = Float.POSITIVE_INFINITY;
      float high = Float.NEGATIVE_INFINITY;
      for (int i = begin; i < begin + groupSize; i++) {
        if (!Float.isFinite(values[i])) {
          throw new IllegalArgumentException(
              "Value %d is %s; only finite values can be quantised".formatted(i, values[i]));
        }
        low = Math.min(low, values[i]);
        high = Math.max(high, values[i]);
      }
      if (!Float.isFinite(high - low)) {
        throw new IllegalArgumentException(
            "Values %s to %s of one group span more than fp32 can hold".formatted(low, high));
      }
      boolean lowIsExact = Math.abs(low) > Math.abs(high);
      float scale = Math.max((high - low) / largestCode, SMALLEST_SCALE);
      if (!lowIsExact) {
        scale = -scale;
      }
      float edge = lowIsExact ? low : high;
      float edgeCode = roundHalfAway(edge / scale);
      float bias = 0;
      if (edgeCode != 0) {
        scale = edge / edgeCode;
        bias = edge;
      }
      for (int i = begin; i < begin + groupSize; i++) {
        float code = roundHalfAway((values[i] - bias) / scale);
        int clamped = (int) Math.clamp(code, 0, (float) largestCode);
        words[i / perWord] |= clamped << (bits * (i % perWord));
      }
      scales[group] = Bf16.fromFloat(scale);
      biases[group] = Bf16.fromFloat(bias);
    }
    return new AffineGroups(bits, groupSize, words, scales, biases);
  }

  static void requireFormat(int bits, int groupSize) {
    if (bits != 4 && bits != 8) {
      throw new IllegalArgumentException("%d bits; only 4 and 8 are supported".formatted(bits));
    }
    if (groupSize != 32 && groupSize != 64 && groupSize != 128) {
      throw new IllegalArgumentException(
          "Group size %d; MLX knows 32, 64 and 128".formatted(groupSize));
    }
  }

  private static float roundHalfAway(float value) {
    return (float) Math.copySign(Math.floor(Math.abs((double) value) + 0.5), value);
  }
}
