package dev.lily.engine.backend;

/**
 * Activations or a small constant, {@code [rows, columns]}, row-major, held by a back end. Element
 * type is the back end's choice (fp32 on the CPU). Rows beyond those of the current plan hold
 * garbage.
 */
public interface Tensor {
  /** Most rows it can hold. */
  int rows();

  int columns();
}
