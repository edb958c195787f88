package dev.lily.metal.kernel;

import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * A residual add and norm of one row that is recorded together with the products that follow it, if
 * a kernel does both, and by itself otherwise. Reused.
 */
public final class DeferredNorm {
  private @Nullable MetalTensor x;
  private @Nullable Region branch;
  private @Nullable Region gain;
  private @Nullable Region n;
  private int columns;
  private float eps;

  /** Keeps the operands of {@link NormKernels#addNorm} for one row. */
  public void defer(
      MetalTensor newX, @Nullable Region newBranch, Region newGain, float newEps, Region newN) {
    x = newX;
    branch = newBranch;
    gain = newGain;
    n = newN;
    columns = newX.columns();
    eps = newEps;
  }

  public boolean isPending() {
    return x != null;
  }

  /** Whether what waits is the norm that gives this. */
  public boolean gives(Region result) {
    return x != null && n == result;
  }

  /** Forgets it. */
  public void clear() {
    x = null;
    branch = null;
    gain = null;
    n = null;
  }

  /** Records it by itself. */
  public void record(NormKernels norm) {
    norm.addNorm(1, columns, x().current(), branch, gain(), eps, n());
    clear();
  }

  MetalTensor x() {
    return Objects.requireNonNull(x);
  }

  @Nullable Region branch() {
    return branch;
  }

  Region gain() {
    return Objects.requireNonNull(gain);
  }

  Region n() {
    return Objects.requireNonNull(n);
  }

  int columns() {
    return columns;
  }

  float eps() {
    return eps;
  }
}
