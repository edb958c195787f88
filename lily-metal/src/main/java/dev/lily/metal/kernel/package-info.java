/**
 * The kernels as Java calls: each family's encoder knows its kernels' argument tables and
 * geometries, a route which of them fits a shape. Knows the device and the operands of the back-end
 * SPI; of sequences only what a plan says of them. Internal.
 */
@NullMarked
package dev.lily.metal.kernel;

import org.jspecify.annotations.NullMarked;
