package dev.lily.engine.backend;

/**
 * A weight matrix {@code [rows, columns]}, or a stack of them, held by a back end. Opaque to the
 * graph; belongs to the back end that loaded it and lives as long as that one.
 */
public interface Matrix {
  /** Matrices in the stack; 1 for a plain matrix. */
  int numMatrices();

  /** Output features. */
  int rows();

  /** Input features. */
  int columns();
}
