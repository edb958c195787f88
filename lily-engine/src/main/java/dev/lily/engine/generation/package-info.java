/** From request to events: prompt encoding, scheduling, stop conditions, usage and timings. */
@NullMarked
package dev.lily.engine.generation;

import org.jspecify.annotations.NullMarked;
