/**
 * Thin typed wrappers over Metal's objects: device, buffers, libraries, pipelines, queues, command
 * buffers, compute encoders, residency sets. A wrapper sends the messages of one class, checks what
 * Metal itself would not report before the GPU faults, and turns nil objects and failed command
 * buffers into exceptions. Knows nothing of models or kernels. Internal.
 *
 * <p>One thread drives a device; only compiling may happen on several. Everything that a {@link
 * dev.lily.metal.device.MetalDevice} made belongs to it and is released with it at the latest, in
 * an order that is safe for work in flight.
 */
@NullMarked
package dev.lily.metal.device;

import org.jspecify.annotations.NullMarked;
