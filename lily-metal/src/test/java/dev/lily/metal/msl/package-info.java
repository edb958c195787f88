/**
 * Proofs of the Metal kernels on machines without Metal: the sources are type-checked as Metal
 * Shading Language by clang, and compiled for the CPU and run there. Needs clang 19.
 */
@NullMarked
package dev.lily.metal.msl;

import org.jspecify.annotations.NullMarked;
