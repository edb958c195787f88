package dev.lily.metal.kernel;

/**
 * Which rows of the plan a dispatch works on. The two paths touch different rows of activations,
 * different slots and different pages, so that neither has to wait for the other.
 */
enum RowPart {
  ALL,
  PREFILL,
  DECODE;

  boolean hasPrefill() {
    return this != DECODE;
  }

  boolean hasDecode() {
    return this != PREFILL;
  }
}
