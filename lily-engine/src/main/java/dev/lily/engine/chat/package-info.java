/**
 * Conversations: messages, tools, the checkpoint's chat template, and the parser that turns model
 * text back into reasoning, answer and tool calls. A leaf: knows no other package of the engine.
 */
@NullMarked
package dev.lily.engine.chat;

import org.jspecify.annotations.NullMarked;
