/** Text to token ids and back. A leaf: knows no other package of the engine. */
@NullMarked
package dev.lily.engine.tokenizer;

import org.jspecify.annotations.NullMarked;
