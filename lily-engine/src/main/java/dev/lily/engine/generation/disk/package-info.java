/**
 * Snapshots as files: their format, the directory they lie in, and the thread that reads and writes
 * them. Knows bytes and tokens, not models, sequences or requests. Internal to the engine.
 */
@NullMarked
package dev.lily.engine.generation.disk;

import org.jspecify.annotations.NullMarked;
