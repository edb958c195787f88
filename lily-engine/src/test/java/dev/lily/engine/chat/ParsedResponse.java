package dev.lily.engine.chat;

import java.util.ArrayList;
import java.util.List;
import tools.jackson.databind.node.ObjectNode;

/** What a parser made of a whole answer, with the texts joined. */
record ParsedResponse(
    String reasoning, String answer, List<Call> calls, List<String> incomplete, String order) {

  record Call(String name, ObjectNode arguments) {}

  /** Feeds the pieces of an answer and ends it. */
  static ParsedResponse of(
      List<ToolDefinition> tools, boolean thinking, boolean truncated, List<String> pieces) {
    return join(parts(tools, thinking, truncated, pieces));
  }

  static List<ResponsePart> parts(
      List<ToolDefinition> tools, boolean thinking, boolean truncated, List<String> pieces) {
    List<ResponsePart> parts = new ArrayList<>();
    ResponseParser parser = new ResponseParser(tools, thinking, parts::add);
    pieces.forEach(parser::accept);
    parser.finish(truncated);
    return parts;
  }

  static ParsedResponse join(List<ResponsePart> parts) {
    StringBuilder reasoning = new StringBuilder();
    StringBuilder answer = new StringBuilder();
    List<Call> calls = new ArrayList<>();
    List<String> incomplete = new ArrayList<>();
    StringBuilder order = new StringBuilder();
    for (ResponsePart part : parts) {
      char kind =
          switch (part) {
            case ResponsePart.ReasoningText(String text) -> {
              reasoning.append(text);
              yield 'R';
            }
            case ResponsePart.AnswerText(String text) -> {
              answer.append(text);
              yield 'A';
            }
            case ResponsePart.CalledTool(ToolCall call) -> {
              calls.add(new Call(call.name(), call.arguments()));
              yield 'C';
            }
            case ResponsePart.IncompleteToolCall(String text) -> {
              incomplete.add(text);
              yield 'I';
            }
          };
      boolean continued =
          !order.isEmpty()
              && order.charAt(order.length() - 1) == kind
              && (kind == 'R' || kind == 'A');
      if (!continued) {
        order.append(kind);
      }
    }
    return new ParsedResponse(
        reasoning.toString(), answer.toString(), calls, incomplete, order.toString());
  }

  static List<String> characters(String text) {
    return text.chars().mapToObj(Character::toString).toList();
  }

  static List<String> cut(String text, int... positions) {
    List<String> pieces = new ArrayList<>();
    int from = 0;
    for (int position : positions) {
      pieces.add(text.substring(from, position));
      from = position;
    }
    pieces.add(text.substring(from));
    return pieces;
  }
}
