package dev.lily.engine.constraint;

import java.util.ArrayList;
import java.util.List;

/** A set of Unicode scalar values as ascending, disjoint ranges. Immutable. */
final class CodePoints {
  static final CodePoints NONE = new CodePoints(new int[0]);

  /** Every scalar value: surrogates are not text. */
  static final CodePoints ALL = new CodePoints(new int[] {0, 0xD7FF, 0xE000, 0x10FFFF});

  /** First and last of each range. */
  private final int[] ranges;

  private CodePoints(int[] ranges) {
    this.ranges = ranges;
  }

  static CodePoints of(int first, int last) {
    return new CodePoints(new int[] {first, last}).intersect(ALL);
  }

  static CodePoints of(int codePoint) {
    return of(codePoint, codePoint);
  }

  int numRanges() {
    return ranges.length / 2;
  }

  int first(int range) {
    return ranges[2 * range];
  }

  int last(int range) {
    return ranges[2 * range + 1];
  }

  boolean isEmpty() {
    return ranges.length == 0;
  }

  boolean contains(int codePoint) {
    for (int i = 0; i < ranges.length; i += 2) {
      if (codePoint >= ranges[i] && codePoint <= ranges[i + 1]) {
        return true;
      }
    }
    return false;
  }

  CodePoints union(CodePoints other) {
    return complement().intersect(other.complement()).complement();
  }

  CodePoints minus(CodePoints other) {
    return intersect(other.complement());
  }

  CodePoints complement() {
    List<int[]> gaps = new ArrayList<>();
    int next = 0;
    for (int i = 0; i < ranges.length; i += 2) {
      if (ranges[i] > next) {
        gaps.add(new int[] {next, ranges[i] - 1});
      }
      next = ranges[i + 1] + 1;
    }
    if (next <= 0x10FFFF) {
      gaps.add(new int[] {next, 0x10FFFF});
    }
    return new CodePoints(flat(gaps)).intersect(ALL);
  }

  CodePoints intersect(CodePoints other) {
    List<int[]> common = new ArrayList<>();
    int i = 0;
    int j = 0;
    while (i < ranges.length && j < other.ranges.length) {
      int first = Math.max(ranges[i], other.ranges[j]);
      int last = Math.min(ranges[i + 1], other.ranges[j + 1]);
      if (first <= last) {
        common.add(new int[] {first, last});
      }
      if (ranges[i + 1] < other.ranges[j + 1]) {
        i += 2;
      } else {
        j += 2;
      }
    }
    return new CodePoints(flat(common));
  }

  private static int[] flat(List<int[]> ranges) {
    int[] flat = new int[2 * ranges.size()];
    for (int i = 0; i < ranges.size(); i++) {
      flat[2 * i] = ranges.get(i)[0];
      flat[2 * i + 1] = ranges.get(i)[1];
    }
    return flat;
  }
}
