package dev.lily.engine.sampling;

import java.util.Arrays;

/**
 * The k largest logits, the lower id first among equals. NaN and negative infinity are never among
 * them.
 */
final class TopK {
  /** Up to here a heap, one pass with rare insertions; beyond, a selection by radix. */
  static final int HEAP_LIMIT = 256;

  /** Ids, the worst at index 0: the smallest logit, the highest id among equals. */
  private final int[] heap = new int[HEAP_LIMIT];

  private final float[] heapLogits = new float[HEAP_LIMIT];

  /** Id of the largest logit, the lowest among equals, or -1 if there is none. */
  static int argMax(float[] logits, int offset, int vocabularySize) {
    int best = -1;
    float max = Float.NEGATIVE_INFINITY;
    for (int id = 0; id < vocabularySize; id++) {
      float logit = logits[offset + id];
      if (logit > max) {
        max = logit;
        best = id;
      }
    }
    return best;
  }

  /**
   * Fills {@code candidates} afresh.
   *
   * @param topK 0 takes all
   */
  void select(float[] logits, int vocabularySize, int topK, Candidates candidates) {
    candidates.size = 0;
    if (topK > 0 && topK <= HEAP_LIMIT) {
      int size = descending(logits, 0, vocabularySize, topK, candidates.ids);
      Arrays.sort(candidates.ids, 0, size);
      for (int i = 0; i < size; i++) {
        candidates.add(candidates.ids[i], logits[candidates.ids[i]]);
      }
      return;
    }
    for (int id = 0; id < vocabularySize; id++) {
      if (logits[id] > Float.NEGATIVE_INFINITY) {
        candidates.add(id, logits[id]);
      }
    }
    if (topK > 0 && topK < candidates.size) {
      Arrays.fill(candidates.weights, 0, candidates.size, 1);
      candidates.keepLikeliest(topK);
    }
  }

  /**
   * Writes the ids of the k largest logits, largest first.
   *
   * @param k 1 to {@link #HEAP_LIMIT}
   * @return how many there are, at most k
   */
  int descending(float[] logits, int offset, int vocabularySize, int k, int[] ids) {
    int size = 0;
    float bar = Float.NEGATIVE_INFINITY;
    for (int id = 0; id < vocabularySize; id++) {
      float logit = logits[offset + id];
      if (logit > bar) {
        if (size < k) {
          rise(size++, id, logit);
        } else {
          sink(size, id, logit);
        }
        bar = size < k ? Float.NEGATIVE_INFINITY : heapLogits[0];
      }
    }
    for (int last = size - 1; last >= 0; last--) {
      ids[last] = heap[0];
      sink(last, heap[last], heapLogits[last]);
    }
    return size;
  }

  /** Puts an entry in at the heap's end. */
  private void rise(int at, int id, float logit) {
    int child = at;
    while (child > 0) {
      int parent = (child - 1) >> 1;
      if (!isWorse(id, logit, parent)) {
        break;
      }
      heap[child] = heap[parent];
      heapLogits[child] = heapLogits[parent];
      child = parent;
    }
    heap[child] = id;
    heapLogits[child] = logit;
  }

  /** Replaces the worst entry. */
  private void sink(int size, int id, float logit) {
    int parent = 0;
    for (int child = 1; child < size; child = 2 * parent + 1) {
      if (child + 1 < size && isWorse(heap[child + 1], heapLogits[child + 1], child)) {
        child++;
      }
      if (isWorse(id, logit, child)) {
        break;
      }
      heap[parent] = heap[child];
      heapLogits[parent] = heapLogits[child];
      parent = child;
    }
    heap[parent] = id;
    heapLogits[parent] = logit;
  }

  private boolean isWorse(int id, float logit, int other) {
    float otherLogit = heapLogits[other];
    return logit < otherLogit || (logit == otherLogit && id > heap[other]);
  }
}
