/**
 * The back-end contract: what every back end must compute, held against plain double-precision
 * arithmetic, and what must come out bit for bit equal. A back end runs it by extending {@link
 * dev.lily.engine.backend.contract.BackendContract}.
 */
@NullMarked
package dev.lily.engine.backend.contract;

import org.jspecify.annotations.NullMarked;
