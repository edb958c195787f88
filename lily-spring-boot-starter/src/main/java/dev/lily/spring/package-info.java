/**
 * Lily for Spring. The sub-packages hold the chat model, the actuator parts and the
 * auto-configuration; here lives only what several of them share.
 */
@NullMarked
package dev.lily.spring;

import org.jspecify.annotations.NullMarked;
