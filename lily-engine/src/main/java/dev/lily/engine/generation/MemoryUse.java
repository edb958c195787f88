package dev.lily.engine.generation;

import dev.lily.engine.model.StatePool;

/**
 * What of a state pool is in use.
 *
 * @param pages KV pages that sequences or snapshots hold
 * @param sequenceSlots recurrent slots that sequences hold
 * @param snapshotSlots recurrent slots that snapshots hold
 * @param mostPages KV pages that were ever held
 * @param mostSlots recurrent slots that were ever held
 * @param allocatedBytes what the device has allocated for all of them so far
 */
public record MemoryUse(
    int pages,
    int sequenceSlots,
    int snapshotSlots,
    int mostPages,
    int mostSlots,
    long allocatedBytes) {
  static final MemoryUse NONE = new MemoryUse(0, 0, 0, 0, 0, 0);

  /** Whether nothing has changed; allocates nothing, as it is asked at every step. */
  boolean isThatOf(StatePool states) {
    return pages == states.usedPages()
        && sequenceSlots + snapshotSlots == states.usedSlots()
        && snapshotSlots == states.snapshots()
        && mostPages == states.mostPages()
        && mostSlots == states.mostSlots()
        && allocatedBytes == states.device().allocatedBytes();
  }

  static MemoryUse of(StatePool states) {
    return new MemoryUse(
        states.usedPages(),
        states.usedSlots() - states.snapshots(),
        states.snapshots(),
        states.mostPages(),
        states.mostSlots(),
        states.device().allocatedBytes());
  }
}
