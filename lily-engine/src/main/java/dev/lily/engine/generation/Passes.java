package dev.lily.engine.generation;

/** How many passes were submitted and have ended, in the same order. Engine thread only. */
final class Passes {
  private long submitted;
  private long ended;

  void countSubmitted() {
    submitted++;
  }

  void countEnded() {
    ended++;
  }

  long submitted() {
    return submitted;
  }

  /**
   * Whether what was asked of the device when so many passes had been submitted is known to be done
   * well, or can be done before anything else: a device does it at the latest in the pass submitted
   * next, and when none is in flight nothing stands before it.
   */
  boolean areOver(long numSubmitted) {
    return ended > numSubmitted || ended == submitted;
  }
}
