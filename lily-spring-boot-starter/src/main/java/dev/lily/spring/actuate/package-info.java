/** Health, meters and the actuator endpoint of a Lily engine. Reads counters; never computes. */
@NullMarked
package dev.lily.spring.actuate;

import org.jspecify.annotations.NullMarked;
