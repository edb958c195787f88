package dev.lily.engine.chat;

import java.util.ArrayList;
import java.util.List;

/**
 * What is done to a conversation before the template sees it; the rules are documented at {@link
 * ChatTemplate#render}.
 */
final class ConversationRules {
  private ConversationRules() {}

  /** Applies the rules to the turns of a conversation. */
  static List<Turn> apply(List<Turn> turns) {
    if (!turns.isEmpty() && turns.getFirst().message() instanceof Message.ToolResult) {
      throw new InvalidConversationException(
          "messages[0].role",
          "The first message is a tool result, but no assistant message called a tool before it."
              + " Send the user message and the call first.");
    }
    List<Turn> ordered = mergeInstructions(turns);
    while (ordered.size() > 1 && isEmptyAnswer(ordered.getLast())) {
      ordered.removeLast();
    }
    return ordered;
  }

  private static List<Turn> mergeInstructions(List<Turn> turns) {
    List<Turn> instructions = new ArrayList<>();
    List<Turn> rest = new ArrayList<>(turns.size());
    for (Turn turn : turns) {
      (turn.message() instanceof Message.Instructions ? instructions : rest).add(turn);
    }
    if (!instructions.isEmpty()) {
      Turn first = instructions.getFirst();
      rest.addFirst(new Turn(first.index(), first.message(), join(instructions)));
    }
    return rest;
  }

  private static MarkedText join(List<Turn> instructions) {
    MarkedText.Builder joined = new MarkedText.Builder();
    String separator = "";
    for (Turn turn : instructions) {
      if (!turn.content().isEmpty()) {
        joined.template(separator).append(turn.content());
        separator = "\n\n";
      }
    }
    return joined.build();
  }

  private static boolean isEmptyAnswer(Turn turn) {
    return turn.message() instanceof Message.Assistant answer
        && turn.content().isEmpty()
        && (answer.reasoning() == null || PythonWhitespace.isBlank(answer.reasoning()))
        && answer.toolCalls().isEmpty();
  }
}
