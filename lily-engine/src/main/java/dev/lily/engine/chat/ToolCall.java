package dev.lily.engine.chat;

import tools.jackson.databind.node.ObjectNode;

/**
 * A call the model made.
 *
 * @param id invented by the engine, unique within a process
 * @param name the function as the model wrote it
 * @param arguments in the order written, typed by the tool's schema
 */
public record ToolCall(String id, String name, ObjectNode arguments) {}
