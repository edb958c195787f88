package dev.lily.engine.chat;

import tools.jackson.databind.node.ObjectNode;

/**
 * A call the model made.
 *
 * @param id invented by the engine, unique within a process; of a call in a caller's history,
 *     whatever the caller sent, or empty (the template links results to calls by order alone)
 * @param name the function as the model wrote it
 * @param arguments in the order written, typed by the tool's schema
 */
public record ToolCall(String id, String name, ObjectNode arguments) {}
