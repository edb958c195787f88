/** Lily for Spring: chat model, endpoint, actuator and auto-configuration live in sub-packages. */
@NullMarked
package dev.lily.spring;

import org.jspecify.annotations.NullMarked;
