package dev.lily.engine.sampling;

import java.util.Arrays;

/**
 * The tokens still in the running, ascending by id, with their adjusted logits and weights. Steps
 * shrink it in place.
 */
final class Candidates {
  private static final int RADIX_BITS = 11;

  final int[] ids;
  final float[] logits;
  final long[] weights;
  int size;

  private final long[] histogram = new long[1 << RADIX_BITS];

  Candidates(int vocabularySize) {
    ids = new int[vocabularySize];
    logits = new float[vocabularySize];
    weights = new long[vocabularySize];
  }

  void add(int id, float logit) {
    ids[size] = id;
    logits[size] = logit;
    size++;
  }

  /** Moves the candidate at {@code from} down to {@code to}. */
  void move(int from, int to) {
    ids[to] = ids[from];
    logits[to] = logits[from];
    weights[to] = weights[from];
  }

  long totalWeight() {
    long total = 0;
    for (int i = 0; i < size; i++) {
      total += weights[i];
    }
    return total;
  }

  /**
   * Keeps the fewest likeliest candidates whose weights reach {@code needed}. Among equal logits,
   * whose weights must be equal too, the lower ids stay. A radix selection: linear whatever the
   * logits, and no sorting.
   *
   * @param needed at least 1 and at most {@link #totalWeight}
   */
  void keepLikeliest(long needed) {
    int cut = 0;
    int known = 0;
    long above = 0;
    for (int shift = Integer.SIZE - RADIX_BITS; known != -1; shift -= RADIX_BITS) {
      int low = Math.max(shift, 0);
      int digits = (-1 << low) & ~known;
      Arrays.fill(histogram, 0);
      for (int i = 0; i < size; i++) {
        int key = key(logits[i]);
        if ((key & known) == cut) {
          histogram[(key & digits) >>> low] += weights[i];
        }
      }
      int digit = digits >>> low;
      while (above + histogram[digit] < needed) {
        above += histogram[digit--];
      }
      cut |= digit << low;
      known |= digits;
    }
    int kept = 0;
    for (int i = 0; i < size; i++) {
      int order = Integer.compareUnsigned(key(logits[i]), cut);
      if (order > 0) {
        move(i, kept++);
      } else if (order == 0 && above < needed) {
        above += weights[i];
        move(i, kept++);
      }
    }
    size = kept;
  }

  /** A number that orders as the logit does when compared unsigned; both zeros are one. */
  private static int key(float logit) {
    int bits = Float.floatToRawIntBits(logit + 0f);
    return bits ^ (bits >> 31 | Integer.MIN_VALUE);
  }
}
