package dev.lily.engine.constraint;

/** Cuts ranges of scalar values into sequences of byte ranges. */
final class Utf8 {
  private static final int[] LAST_OF_LENGTH = {0x7F, 0x7FF, 0xFFFF, 0x10FFFF};

  private Utf8() {}

  /** Takes one sequence: its bytes are within {@code low[i]} to {@code high[i]}. */
  interface Sink {
    void sequence(int[] low, int[] high, int length);
  }

  /** Gives the sequences that together encode the scalar values from first to last. */
  static void sequences(int first, int last, Sink sink) {
    int from = first;
    for (int length = 1; length <= 4 && from <= last; length++) {
      int to = Math.min(last, LAST_OF_LENGTH[length - 1]);
      if (from <= to) {
        split(from, to, length, sink);
        from = to + 1;
      }
    }
  }

  /** Splits until each continuation byte's range is whole or the bytes before it are fixed. */
  private static void split(int first, int last, int length, Sink sink) {
    for (int i = 1; i < length; i++) {
      int mask = (1 << (6 * i)) - 1;
      if ((first & ~mask) != (last & ~mask)) {
        if ((first & mask) != 0) {
          split(first, first | mask, length, sink);
          split((first | mask) + 1, last, length, sink);
          return;
        }
        if ((last & mask) != mask) {
          split(first, (last & ~mask) - 1, length, sink);
          split(last & ~mask, last, length, sink);
          return;
        }
      }
    }
    int[] low = encode(first, length);
    int[] high = encode(last, length);
    sink.sequence(low, high, length);
  }

  private static int[] encode(int codePoint, int length) {
    int[] bytes = new int[length];
    int rest = codePoint;
    for (int i = length - 1; i > 0; i--) {
      bytes[i] = 0x80 | (rest & 0x3F);
      rest >>= 6;
    }
    bytes[0] = length == 1 ? rest : ((0xF0 << (4 - length)) & 0xFF) | rest;
    return bytes;
  }
}
