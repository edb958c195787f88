/** The Metal back end: Lily's kernels on Apple GPUs, driven through the foreign-function API. */
@NullMarked
package dev.lily.metal;

import org.jspecify.annotations.NullMarked;
