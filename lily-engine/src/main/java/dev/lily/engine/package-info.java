/** The public entrance and composition root of Lily: opens a model and answers requests. */
@NullMarked
package dev.lily.engine;

import org.jspecify.annotations.NullMarked;
