package dev.lily.engine.backend.cpu.kernel;

import java.lang.foreign.MemorySegment;

/** The causal convolution and the recurrence of Gated DeltaNet. */
public interface DeltaRuleKernels {
  /**
   * {@code out[c] = silu(Σ_τ taps[τ][c] · inputs[row + τ][c])} for one row.
   *
   * @param inputs {@code [rows, channels]}
   * @param row oldest input row under the taps
   * @param taps {@code [kernel, channels]}
   */
  void convolve(
      float[] inputs, int row, float[] taps, int kernel, int channels, float[] out, int outOffset);

  /** Value columns whose part of a state is best kept in cache over several rows. */
  int stateColumns();

  /**
   * Advances the state of one value head by one row, for value columns {@code from} to {@code to}:
   *
   * <pre>
   * d = beta · (v - decay · Sᵀk);  S = decay · S + k dᵀ;  o = Sᵀ q
   * </pre>
   *
   * @param state fp32 {@code [keyDim, valueDim]} from byte {@code offset} on, updated
   * @param head vectors and gates of the row
   */
  void advance(MemorySegment state, long offset, DeltaHead head, int from, int to);
}
