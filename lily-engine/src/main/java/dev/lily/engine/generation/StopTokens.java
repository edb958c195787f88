package dev.lily.engine.generation;

/** The ids with which a model ends its turn. Immutable. */
final class StopTokens {
  private final int[] ids;

  StopTokens(int[] ids) {
    this.ids = ids.clone();
  }

  boolean contains(int id) {
    for (int stop : ids) {
      if (stop == id) {
        return true;
      }
    }
    return false;
  }

  /** A token mask that allows everything else, in the form of {@code DeviceState.maskTokens}. */
  long[] maskOfOthers(int vocabularySize) {
    long[] allowed = new long[(vocabularySize + Long.SIZE - 1) / Long.SIZE];
    for (int id = 0; id < vocabularySize; id++) {
      if (!contains(id)) {
        allowed[id >> 6] |= 1L << (id & 63);
      }
    }
    return allowed;
  }
}
