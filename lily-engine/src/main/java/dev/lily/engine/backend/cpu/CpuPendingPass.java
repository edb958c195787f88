package dev.lily.engine.backend.cpu;

import dev.lily.engine.backend.PendingPass;
import dev.lily.engine.sampling.SampledToken;

/** Results of a pass that has already run. Two of them take turns. */
final class CpuPendingPass implements PendingPass {
  private final SampledToken[] tokens;
  private long deviceNanos;

  CpuPendingPass(int maxLogitRows) {
    tokens = new SampledToken[maxLogitRows];
    for (int i = 0; i < maxLogitRows; i++) {
      tokens[i] = new SampledToken();
    }
  }

  /** Forgets the results of the pass before the last. */
  void clear(int numLogitRows) {
    for (int i = 0; i < numLogitRows; i++) {
      tokens[i].clear();
    }
  }

  SampledToken sampled(int index) {
    return tokens[index];
  }

  void ranFor(long nanos) {
    deviceNanos = nanos;
  }

  @Override
  public void await() {}

  @Override
  public int token(int index) {
    return tokens[index].token();
  }

  @Override
  public float logprob(int index) {
    return tokens[index].logprob();
  }

  @Override
  public int numTopLogprobs(int index) {
    return tokens[index].numTopLogprobs();
  }

  @Override
  public int topToken(int index, int rank) {
    return tokens[index].topToken(rank);
  }

  @Override
  public float topLogprob(int index, int rank) {
    return tokens[index].topLogprob(rank);
  }

  @Override
  public long deviceNanos() {
    return deviceNanos;
  }
}
