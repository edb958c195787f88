/** The sample application: a chat page, REST examples and the OpenAI endpoint on lily-nano. */
@NullMarked
package dev.lily.sample;

import org.jspecify.annotations.NullMarked;
