package dev.lily.engine.backend;

import java.util.Arrays;

/**
 * The rows of one forward pass, grouped by sequence and in position order. A prefill chunk, a
 * batched decode step and any mix of them are all row plans. Reused from pass to pass: {@link
 * #clear}, then one {@code add} per sequence. Not thread-safe.
 */
public final class RowPlan {
  /**
   * Stands for "the token this sequence's sampling slot chose last", which never left the device.
   */
  public static final int PREVIOUS_TOKEN = -1;

  /** Sampling slot of rows whose logits are wanted without choosing a token. */
  public static final int NO_SAMPLING = -1;

  private final int maxRows;
  private final int[] tokens;
  private final int[] sequenceOfRow;
  private final int[] firstRow;
  private final int[] numRows;
  private final int[] position;
  private final PageTable[] pages;
  private final int[] recurrentSlot;
  private final int[] samplingSlot;
  private final int[] logitRows;
  private int rows;
  private int sequences;
  private int logits;

  public RowPlan(PassLimits limits) {
    maxRows = limits.maxRows();
    tokens = new int[maxRows];
    sequenceOfRow = new int[maxRows];
    logitRows = new int[limits.maxLogitRows()];
    int maxSequences = limits.maxSequences();
    firstRow = new int[maxSequences];
    numRows = new int[maxSequences];
    position = new int[maxSequences];
    pages = new PageTable[maxSequences];
    recurrentSlot = new int[maxSequences];
    samplingSlot = new int[maxSequences];
  }

  /** Empties the plan. */
  public void clear() {
    Arrays.fill(pages, 0, sequences, null);
    rows = 0;
    sequences = 0;
    logits = 0;
  }

  /** Rows that still fit. */
  public int remainingRows() {
    return maxRows - rows;
  }

  /** Sequences that still fit. */
  public int remainingSequences() {
    return firstRow.length - sequences;
  }

  /**
   * Adds rows of one sequence.
   *
   * @param tokens ids; only {@code [from, from + count)} are read, and copied
   * @param position position of the first row, which is the number of tokens the sequence holds
   * @param pages must already cover {@code position + count} tokens
   * @param numLogitRows how many of the last rows need logits
   * @param samplingSlot slot that samples from each of them in order, or {@link #NO_SAMPLING}
   * @return index of the sequence in this plan
   */
  public int add(
      int[] tokens,
      int from,
      int count,
      int position,
      PageTable pages,
      int recurrentSlot,
      int numLogitRows,
      int samplingSlot) {
    if (count < 1
        || count > remainingRows()
        || remainingSequences() < 1
        || numLogitRows > count
        || logits + numLogitRows > logitRows.length) {
      throw new IllegalArgumentException(
          "%d rows, %d of them with logits, do not fit a plan of %d rows that holds %d"
              .formatted(count, numLogitRows, maxRows, rows));
    }
    int s = sequences++;
    System.arraycopy(tokens, from, this.tokens, rows, count);
    Arrays.fill(sequenceOfRow, rows, rows + count, s);
    firstRow[s] = rows;
    numRows[s] = count;
    this.position[s] = position;
    this.pages[s] = pages;
    this.recurrentSlot[s] = recurrentSlot;
    this.samplingSlot[s] = samplingSlot;
    for (int r = rows + count - numLogitRows; r < rows + count; r++) {
      logitRows[logits++] = r;
    }
    rows += count;
    return s;
  }

  public int numRows() {
    return rows;
  }

  public int numSequences() {
    return sequences;
  }

  /** Token id of a row, or {@link #PREVIOUS_TOKEN}. */
  public int token(int row) {
    return tokens[row];
  }

  /** Index in this plan of the sequence a row belongs to. */
  public int sequenceOf(int row) {
    return sequenceOfRow[row];
  }

  /** Position of a row in its sequence. */
  public int positionOf(int row) {
    int s = sequenceOfRow[row];
    return position[s] + row - firstRow[s];
  }

  public int firstRow(int sequence) {
    return firstRow[sequence];
  }

  public int numRows(int sequence) {
    return numRows[sequence];
  }

  /** Position of the sequence's first row. */
  public int position(int sequence) {
    return position[sequence];
  }

  public PageTable pages(int sequence) {
    return pages[sequence];
  }

  public int recurrentSlot(int sequence) {
    return recurrentSlot[sequence];
  }

  /** Sampling slot of a sequence, or {@link #NO_SAMPLING}. */
  public int samplingSlot(int sequence) {
    return samplingSlot[sequence];
  }

  /** Rows that need logits, over all sequences. */
  public int numLogitRows() {
    return logits;
  }

  /** Plan row of the {@code index}-th row that needs logits. */
  public int logitRow(int index) {
    return logitRows[index];
  }
}
