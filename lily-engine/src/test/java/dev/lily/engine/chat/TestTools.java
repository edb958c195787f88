package dev.lily.engine.chat;

import java.util.List;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

/** Tools to call, written with single quotes for double ones. */
final class TestTools {
  static final ToolDefinition WEATHER =
      tool(
          "get_weather",
          """
          {'type':'object',
           'properties':{'city':{'type':'string'},'days':{'type':'integer'}},
           'required':['city']}""");
  static final ToolDefinition WRITE_FILE =
      tool(
          "write_file",
          """
          {'type':'object',
           'properties':{'path':{'type':'string'},'content':{'type':'string'}},
           'required':['path','content']}""");
  static final ToolDefinition NOW = tool("now", "{'type':'object','properties':{}}");
  static final List<ToolDefinition> ALL = List.of(WEATHER, WRITE_FILE, NOW);

  private TestTools() {}

  static ToolDefinition tool(String name, String parameters) {
    return ToolDefinition.of(name, "A tool for tests", object(parameters));
  }

  static ObjectNode object(String json) {
    return (ObjectNode) JsonMapper.shared().readTree(json.replace('\'', '"'));
  }
}
