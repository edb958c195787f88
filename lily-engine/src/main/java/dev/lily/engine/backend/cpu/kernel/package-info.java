/**
 * What every kernel family of the CPU back end shares: the interfaces of the families, the storage
 * they work on, and the threads. A kernel runs on one thread over the part of the work it is given;
 * how work is cut into parts is decided above and never changes a result.
 */
@NullMarked
package dev.lily.engine.backend.cpu.kernel;

import org.jspecify.annotations.NullMarked;
