/**
 * Kernels on the Vector API. The only package that may touch {@code jdk.incubator.vector}: it must
 * not be loaded without that module.
 */
@NullMarked
package dev.lily.engine.backend.cpu.vector;

import org.jspecify.annotations.NullMarked;
