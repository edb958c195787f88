/** Command-line tools that measure: a benchmark, and random-weight checkpoints for it. */
@NullMarked
package dev.lily.engine.bench;

import org.jspecify.annotations.NullMarked;
