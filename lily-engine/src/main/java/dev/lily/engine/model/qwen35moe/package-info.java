/**
 * The {@code qwen3_5_moe} graph and its weights, written once over the back-end interface for every
 * device.
 */
@NullMarked
package dev.lily.engine.model.qwen35moe;

import org.jspecify.annotations.NullMarked;
