package dev.lily.engine.backend.cpu;

import dev.lily.engine.backend.cpu.kernel.WorkerPool;
import java.util.Arrays;

/**
 * Chooses experts for each row and groups the rows of each expert. An assignment is one (row, rank)
 * with number {@code row * k + rank}.
 */
final class ExpertRouter implements WorkerPool.Task {
  private static final int ROWS_PER_PART = 8;

  private final Compute compute;
  private final int numExperts;
  private final int[] expertOf;
  private final float[] weightOf;
  private final int[] start;
  private final int[] assignments;
  private final int[] rowOf;
  private final int[] active;
  private int numActive;
  private float[] logits = {};
  private int rows;
  private int k;

  ExpertRouter(Compute compute, int numExperts, int numExpertsPerToken) {
    this.compute = compute;
    this.numExperts = numExperts;
    int most = Math.multiplyExact(compute.maxRows(), numExpertsPerToken);
    expertOf = new int[most];
    weightOf = new float[most];
    assignments = new int[most];
    rowOf = new int[most];
    start = new int[numExperts + 1];
    active = new int[numExperts];
  }

  /**
   * @param logits {@code [rows, numExperts]}
   */
  void route(float[] logits, int rows, int numExpertsPerToken) {
    this.logits = logits;
    this.rows = rows;
    k = numExpertsPerToken;
    compute.pool().run(this, Compute.ceilDiv(rows, ROWS_PER_PART));
    group();
  }

  @Override
  public void run(int part, int worker) {
    int end = Math.min(rows, (part + 1) * ROWS_PER_PART);
    for (int r = part * ROWS_PER_PART; r < end; r++) {
      choose(r);
    }
  }

  /**
   * The k largest, lower index on ties. The softmax over all experts, renormalised over the chosen
   * ones, is the softmax over the chosen ones.
   */
  private void choose(int row) {
    int first = row * numExperts;
    int to = row * k;
    for (int rank = 0; rank < k; rank++) {
      int best = -1;
      for (int e = 0; e < numExperts; e++) {
        if ((best < 0 || logits[first + e] > logits[first + best]) && !chosen(to, rank, e)) {
          best = e;
        }
      }
      expertOf[to + rank] = best;
    }
    float max = logits[first + expertOf[to]];
    float sum = 0;
    for (int rank = 0; rank < k; rank++) {
      float p = (float) Math.exp(logits[first + expertOf[to + rank]] - max);
      weightOf[to + rank] = p;
      sum += p;
    }
    for (int rank = 0; rank < k; rank++) {
      weightOf[to + rank] /= sum;
    }
  }

  private boolean chosen(int from, int count, int expert) {
    for (int i = from; i < from + count; i++) {
      if (expertOf[i] == expert) {
        return true;
      }
    }
    return false;
  }

  /** Counting sort by expert; within an expert in order of rows. */
  private void group() {
    Arrays.fill(start, 0);
    int count = rows * k;
    for (int a = 0; a < count; a++) {
      start[expertOf[a] + 1]++;
    }
    numActive = 0;
    for (int e = 0; e < numExperts; e++) {
      if (start[e + 1] > 0) {
        active[numActive++] = e;
      }
      start[e + 1] += start[e];
    }
    for (int a = 0; a < count; a++) {
      int at = start[expertOf[a]]++;
      assignments[at] = a;
      rowOf[at] = a / k;
    }
    System.arraycopy(start, 0, start, 1, numExperts);
    start[0] = 0;
  }

  int numAssignments() {
    return rows * k;
  }

  /** Experts that some row chose. */
  int numActive() {
    return numActive;
  }

  int expert(int activeIndex) {
    return active[activeIndex];
  }

  /** Place in {@link #assignments} of an expert's first row. */
  int first(int expert) {
    return start[expert];
  }

  int count(int expert) {
    return start[expert + 1] - start[expert];
  }

  /** Assignments, grouped by expert. */
  int[] assignments() {
    return assignments;
  }

  /** The row of each of {@link #assignments}. */
  int[] rowOf() {
    return rowOf;
  }

  float weight(int assignment) {
    return weightOf[assignment];
  }
}
