/**
 * Plain Java kernels: the readable reference that other families are held against, and the fallback
 * where the Vector API is missing. Transcendental functions are evaluated in double precision.
 */
@NullMarked
package dev.lily.engine.backend.cpu.scalar;

import org.jspecify.annotations.NullMarked;
