/**
 * The Objective-C runtime through the foreign-function API: messages, selectors, ownership,
 * autorelease pools, and the few Foundation classes that every framework's binding needs. The only
 * user of {@link java.lang.foreign.Linker}. Knows nothing of Metal. Internal.
 *
 * <p>Objects, classes and pointers are plain {@code long}s here: a message then allocates nothing,
 * and 0 is {@code nil}. Every class of this package loads on every platform; where there is no
 * runtime, {@link dev.lily.metal.objc.ObjcRuntime#unavailableReason} says why, and a call throws
 * {@link dev.lily.metal.objc.ObjcException}.
 */
@NullMarked
package dev.lily.metal.objc;

import org.jspecify.annotations.NullMarked;
