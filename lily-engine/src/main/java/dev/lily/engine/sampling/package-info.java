/**
 * How a token is chosen from logits: options, their validation, and the sampler. A leaf: knows no
 * other package of the engine.
 */
@NullMarked
package dev.lily.engine.sampling;

import org.jspecify.annotations.NullMarked;
