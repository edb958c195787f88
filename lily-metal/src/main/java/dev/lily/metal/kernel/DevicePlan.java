package dev.lily.metal.kernel;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.PageTable;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.StateLayout;
import dev.lily.metal.device.MetalBuffer;
import java.lang.foreign.MemorySegment;

/**
 * A plan as the device sees it. Sequences that bring one row whose token never left the device take
 * the decode path, all others the prefill path: also a draft that is verified, whose first token
 * never left the device either. So its rows have the bits of a prompt. Prefill rows come first,
 * decode rows after them, and rows that need logits likewise. Reused from pass to pass, when the
 * device has done with the pass before; allocates nothing then.
 */
public final class DevicePlan {
  private static final int SEQUENCE_WORDS = 4;
  private static final long WORD = Integer.BYTES;
  private static final long PART_ALIGNMENT = 256;

  private final StateLayout layout;
  private final PassLimits limits;
  private final int maxPages;
  private final MetalBuffer buffer;
  private final MemorySegment memory;
  private final long tokens;
  private final long slots;
  private final long positions;
  private final long sequenceOf;
  private final long sequences;
  private final long tables;
  private final long logitRows;
  private final long sampledRows;

  private final int[] deviceRow;
  private final int[] deviceLogit;
  private int numPrefillRows;
  private int numDecodeRows;
  private int numPrefillSequences;
  private int numPrefillLogits;
  private int numDecodeLogits;
  private int longestPrefill;
  private int longestDecode;
  private int numSampledRows;
  private long numAttended;

  public DevicePlan(DeviceMemory deviceMemory, StateLayout layout, PassLimits limits) {
    this.layout = layout;
    this.limits = limits;
    this.maxPages = maxPages(layout, limits);
    tokens = 0;
    slots = after(tokens, limits.maxRows());
    positions = after(slots, limits.maxRows());
    sequenceOf = after(positions, limits.maxRows());
    sequences = after(sequenceOf, limits.maxRows());
    tables = after(sequences, (long) SEQUENCE_WORDS * limits.maxSequences());
    logitRows = after(tables, (long) maxPages * limits.maxSequences());
    sampledRows = after(logitRows, limits.maxLogitRows());
    buffer = deviceMemory.allocate(after(sampledRows, 2L * limits.maxLogitRows()));
    memory = buffer.contents();
    deviceRow = new int[limits.maxRows()];
    deviceLogit = new int[limits.maxLogitRows()];
  }

  /** Bytes of a plan's buffer. */
  public static long bytes(StateLayout layout, PassLimits limits) {
    return WORD
            * (4L * limits.maxRows()
                + (long) (SEQUENCE_WORDS + maxPages(layout, limits)) * limits.maxSequences()
                + 3L * limits.maxLogitRows())
        + 8 * PART_ALIGNMENT;
  }

  private static int maxPages(StateLayout layout, PassLimits limits) {
    return KernelEncoder.ceilDiv(limits.maxPositions(), Math.max(1, layout.pageTokens())) + 1;
  }

  private static long after(long part, long words) {
    return (part + words * WORD + PART_ALIGNMENT - 1) / PART_ALIGNMENT * PART_ALIGNMENT;
  }

  /** Takes up a plan. */
  public void fill(RowPlan plan) {
    numPrefillRows = 0;
    numDecodeRows = 0;
    numPrefillSequences = 0;
    numPrefillLogits = 0;
    longestPrefill = 0;
    longestDecode = 0;
    numSampledRows = 0;
    numAttended = 0;
    int index = 0;
    for (int s = 0; s < plan.numSequences(); s++) {
      if (!isDecode(plan, s)) {
        add(plan, s, index++, numPrefillRows);
        numPrefillRows += plan.numRows(s);
        longestPrefill = Math.max(longestPrefill, plan.numRows(s));
      }
    }
    numPrefillSequences = index;
    for (int s = 0; s < plan.numSequences(); s++) {
      if (isDecode(plan, s)) {
        add(plan, s, index++, numPrefillRows + numDecodeRows++);
        longestDecode = Math.max(longestDecode, plan.position(s) + 1);
      }
    }
    fillLogitRows(plan);
  }

  /** Whether all rows of a plan take the decode path. */
  public static boolean isDecode(RowPlan plan) {
    for (int s = 0; s < plan.numSequences(); s++) {
      if (!isDecode(plan, s)) {
        return false;
      }
    }
    return true;
  }

  private static boolean isDecode(RowPlan plan, int sequence) {
    return plan.numRows(sequence) == 1
        && plan.token(plan.firstRow(sequence)) == RowPlan.PREVIOUS_TOKEN;
  }

  private void add(RowPlan plan, int sequence, int index, int firstDeviceRow) {
    int count = plan.numRows(sequence);
    int position = plan.position(sequence);
    if (position < 0 || position + count > limits.maxPositions()) {
      throw new BackendException(
          "A sequence of %d tokens exceeds the limit of %d"
              .formatted(position + count, limits.maxPositions()));
    }
    int slot = requireSlot("recurrent", plan.recurrentSlot(sequence), layout.numSlots());
    long at = sequences + WORD * SEQUENCE_WORDS * index;
    memory.set(JAVA_INT, at, firstDeviceRow);
    memory.set(JAVA_INT, at + WORD, count);
    memory.set(JAVA_INT, at + 2 * WORD, slot);
    memory.set(JAVA_INT, at + 3 * WORD, position);
    int first = plan.firstRow(sequence);
    for (int r = 0; r < count; r++) {
      int token = plan.token(first + r);
      int samplingSlot = plan.samplingSlot(sequence);
      if (token == RowPlan.PREVIOUS_TOKEN) {
        requireSlot("sampling", samplingSlot, layout.numSamplingSlots());
      }
      long row = WORD * (firstDeviceRow + r);
      memory.set(JAVA_INT, tokens + row, token);
      memory.set(JAVA_INT, slots + row, Math.max(0, samplingSlot));
      memory.set(JAVA_INT, positions + row, position + r);
      memory.set(JAVA_INT, sequenceOf + row, index);
      deviceRow[first + r] = firstDeviceRow + r;
    }
    addPages(plan.pages(sequence), index, position + count);
    numAttended += (long) count * position + (long) count * (count + 1) / 2;
  }

  private static int requireSlot(String kind, int slot, int count) {
    if (slot < 0 || slot >= Math.max(1, count)) {
      throw new BackendException(
          "A sequence names %s slot %d; there are %d".formatted(kind, slot, count));
    }
    return slot;
  }

  private void addPages(PageTable table, int index, int positionsNeeded) {
    int needed = KernelEncoder.ceilDiv(positionsNeeded, Math.max(1, layout.pageTokens()));
    long at = tables + WORD * maxPages * index;
    for (int i = 0; i < Math.min(needed, table.size()); i++) {
      int page = table.page(i);
      if (page < 0 || page >= layout.numPages()) {
        throw new BackendException(
            "A page table names page %d; there are %d".formatted(page, layout.numPages()));
      }
      memory.set(JAVA_INT, at + WORD * i, page);
    }
  }

  private void fillLogitRows(RowPlan plan) {
    for (int i = 0; i < plan.numLogitRows(); i++) {
      numPrefillLogits += deviceRow[plan.logitRow(i)] < numPrefillRows ? 1 : 0;
    }
    numDecodeLogits = plan.numLogitRows() - numPrefillLogits;
    int prefill = 0;
    int decode = numPrefillLogits;
    for (int i = 0; i < plan.numLogitRows(); i++) {
      int row = deviceRow[plan.logitRow(i)];
      deviceLogit[i] = row < numPrefillRows ? prefill++ : decode++;
      memory.set(JAVA_INT, logitRows + WORD * deviceLogit[i], row);
    }
  }

  /** Checks that every sequence's page table covers its rows. */
  public void requirePages(RowPlan plan) {
    for (int s = 0; s < plan.numSequences(); s++) {
      int end = plan.position(s) + plan.numRows(s);
      if ((long) plan.pages(s).size() * layout.pageTokens() < end) {
        throw new BackendException(
            "A page table of %d pages of %d tokens does not cover %d tokens"
                .formatted(plan.pages(s).size(), layout.pageTokens(), end));
      }
    }
  }

  /** Adds a row to sample from; gives its number. */
  public int addSampledRow(int logitRow, int slot) {
    requireSlot("sampling", slot, layout.numSamplingSlots());
    long at = sampledRows + 2 * WORD * numSampledRows;
    memory.set(JAVA_INT, at, logitRow);
    memory.set(JAVA_INT, at + WORD, slot);
    return numSampledRows++;
  }

  public int numRows() {
    return numPrefillRows + numDecodeRows;
  }

  public int numPrefillRows() {
    return numPrefillRows;
  }

  /** Rows, and sequences, of the decode path. */
  public int numDecodeRows() {
    return numDecodeRows;
  }

  public int numPrefillSequences() {
    return numPrefillSequences;
  }

  public int numLogitRows() {
    return numPrefillLogits + numDecodeLogits;
  }

  public int numPrefillLogits() {
    return numPrefillLogits;
  }

  public int numDecodeLogits() {
    return numDecodeLogits;
  }

  /** Most rows of a prefill sequence. */
  int longestPrefill() {
    return longestPrefill;
  }

  /** Most tokens of a decode sequence. */
  int longestDecode() {
    return longestDecode;
  }

  /** Tokens that the rows attend to, all rows together. */
  public long numAttended() {
    return numAttended;
  }

  int maxPages() {
    return maxPages;
  }

  /** Where a row of the plan lies on the device. */
  public int deviceRow(int planRow) {
    return deviceRow[planRow];
  }

  /** Where a row that needs logits lies in tensors of such rows. */
  public int deviceLogit(int index) {
    return deviceLogit[index];
  }

  void bindTokens(KernelEncoder encoder) {
    encoder.constant(buffer, tokens).constant(buffer, slots);
  }

  void bindLogitRows(KernelEncoder encoder) {
    encoder.constant(buffer, logitRows);
  }

  /** Positions and sequence numbers of the rows from {@code firstRow} on. */
  void bindPositions(KernelEncoder encoder, int firstRow) {
    encoder.constant(buffer, positions + WORD * firstRow);
  }

  void bindSequenceOf(KernelEncoder encoder, int firstRow) {
    encoder.constant(buffer, sequenceOf + WORD * firstRow);
  }

  void bindSequences(KernelEncoder encoder, int firstSequence) {
    encoder.constant(buffer, sequences + WORD * SEQUENCE_WORDS * firstSequence);
  }

  void bindTables(KernelEncoder encoder) {
    encoder.constant(buffer, tables);
  }

  void bindSampledRows(KernelEncoder encoder, int first) {
    encoder.constant(buffer, sampledRows + 2 * WORD * first);
  }

  /** Gives the memory back. */
  public void release(DeviceMemory deviceMemory) {
    deviceMemory.release(buffer);
  }
}
