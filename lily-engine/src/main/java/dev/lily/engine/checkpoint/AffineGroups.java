package dev.lily.engine.checkpoint;

/**
 * Affine-quantised values on the heap, in checkpoint order: {@code value = scale * code + bias} per
 * group of {@code groupSize} consecutive values. The arrays are handed over, not copied.
 *
 * @param bits bits of a code, 4 or 8
 * @param groupSize values that share a scale and a bias
 * @param words unsigned codes, lowest bits first, {@code 32 / bits} in a word
 * @param scales bf16 bit patterns, one a group; may be negative
 * @param biases bf16 bit patterns, one a group
 */
public record AffineGroups(int bits, int groupSize, int[] words, short[] scales, short[] biases) {

  public AffineGroups {
    AffineQuantizer.requireFormat(bits, groupSize);
    long values = (long) scales.length * groupSize;
    if (biases.length != scales.length || (long) words.length * (32 / bits) != values) {
      throw new IllegalArgumentException(
          "%d words of %d-bit codes, %d scales and %d biases do not make groups of %d"
              .formatted(words.length, bits, scales.length, biases.length, groupSize));
    }
  }

  /** Number of values. */
  public int size() {
    return Math.multiplyExact(scales.length, groupSize);
  }

  /** The unsigned code of a value. */
  public int code(int index) {
    int perWord = 32 / bits;
    return (words[index / perWord] >>> (bits * (index % perWord))) & ((1 << bits) - 1);
  }

  /** All values, {@code scale * code + bias} evaluated in fp32 with two roundings. */
  public float[] dequantize() {
    float[] values = new float[size()];
    for (int i = 0; i < values.length; i++) {
      int group = i / groupSize;
      values[i] = Bf16.toFloat(scales[group]) * code(i) + Bf16.toFloat(biases[group]);
    }
    return values;
  }
}
