/**
 * The CPU back end. Each verb of a pass runs at once: it cuts its work into parts whose results do
 * not depend on who computes them, and hands the parts to a kernel family.
 */
@NullMarked
package dev.lily.engine.backend.cpu;

import org.jspecify.annotations.NullMarked;
