package dev.lily.engine.constraint;

/** A deterministic automaton over bytes, its states found as they are asked for. */
interface ByteAutomaton {
  /** No further byte can be accepted. */
  int DEAD = -1;

  int start();

  /** The state after a byte (0 to 255), or {@link #DEAD}. */
  int step(int state, int unsignedByte);

  /** Whether the bytes so far are a whole text of the language. */
  boolean accepts(int state);
}
