/**
 * The service provider interface between the model graph and a device. Of the leaves it knows only
 * {@code sampling}. A back end implements these types and nothing of this package points to one.
 */
@NullMarked
package dev.lily.engine.backend;

import org.jspecify.annotations.NullMarked;
