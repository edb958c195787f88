/**
 * A model directory on disk: configuration and memory-mapped tensors, checked as untrusted input. A
 * leaf: knows no other package of the engine.
 */
@NullMarked
package dev.lily.engine.checkpoint;

import org.jspecify.annotations.NullMarked;
