/**
 * What the scheduler may know of a model: its limits, the state of a sequence, and one forward pass
 * over a row plan.
 */
@NullMarked
package dev.lily.engine.model;

import org.jspecify.annotations.NullMarked;
