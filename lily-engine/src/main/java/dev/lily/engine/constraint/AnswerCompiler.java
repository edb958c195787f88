package dev.lily.engine.constraint;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.US_ASCII;

import java.util.ArrayList;
import java.util.List;

/** Compiles the shape of a whole answer: what may come before, instead of and behind the text. */
final class AnswerCompiler {
  private final AnswerShape shape;
  private final ConstraintCompiler constraints = new ConstraintCompiler();
  private final GrammarBuilder grammar = constraints.grammar();

  private AnswerCompiler(AnswerShape shape) {
    this.shape = shape;
  }

  static Grammar compile(AnswerShape shape) {
    try {
      AnswerCompiler compiler = new AnswerCompiler(shape);
      return compiler.grammar.build(compiler.start());
    } catch (GrammarBuilder.TooLarge e) {
      throw new InvalidConstraintException(
          "",
          "The tools and the answer need too large an automaton; use fewer or smaller ones.",
          e);
    }
  }

  private int start() {
    int start = grammar.node();
    int visible = shape.reasoning() ? reasoning(start) : start;
    int end = grammar.endNode();
    int calls = grammar.node();
    if (!shape.tools().isEmpty()) {
      calls(calls, end);
    }
    OutputConstraint answer = shape.answer();
    if (shape.calls() == AnswerShape.Calls.REQUIRED) {
      grammar.epsilon(visible, calls);
    } else if (answer != null) {
      grammar.call(visible, constraints.rule(answer), end);
      grammar.epsilon(visible, calls);
    } else {
      int behind = grammar.node();
      grammar.language(visible, textWithout(List.of("<tool_call>", "<function=")), behind);
      grammar.epsilon(behind, calls);
      grammar.epsilon(behind, end);
    }
    return start;
  }

  /** Any thought, its end, and the empty line that the template puts behind it. */
  private int reasoning(int start) {
    int thought = grammar.node();
    grammar.language(start, textWithout(List.of("</think>")), thought);
    int closed = mark(thought, shape.markup().reasoningEnd());
    return grammar.literal(closed, "\n\n".getBytes(US_ASCII));
  }

  private int mark(int from, String mark) {
    return grammar.literal(from, mark.getBytes(ISO_8859_1));
  }

  /** One call or several, each on lines of its own. */
  private void calls(int from, int end) {
    if (shape.tools().size() > Matcher.MAX_READINGS / 2) {
      throw new InvalidConstraintException(
          "/tools",
          "%d tools; with calls that follow their schemas at most %d are supported."
              .formatted(shape.tools().size(), Matcher.MAX_READINGS / 2));
    }
    int call = grammar.node();
    int behind = grammar.node();
    grammar.epsilon(from, call);
    int opened = mark(call, shape.markup().callStart());
    int function = grammar.literal(opened, "\n<function=".getBytes(US_ASCII));
    ToolCallRules rules = new ToolCallRules(grammar, constraints.json());
    List<SchemaCompiler> schemas = new ArrayList<>();
    for (AnswerShape.Tool tool : shape.tools()) {
      schemas.add(rules.emit(tool, function, behind));
    }
    schemas.forEach(SchemaCompiler::finish);
    int closed = mark(behind, shape.markup().callEnd());
    grammar.epsilon(closed, end);
    if (shape.parallel()) {
      grammar.bytes(closed, '\n', '\n', call);
    }
  }

  private static Dfa textWithout(List<String> words) {
    return Dfa.intersection(
        RegexCompiler.compile(RegexNode.ANYTHING, RegexCompiler.Encoding.PLAIN, ""),
        new ForbiddenTexts(words));
  }
}
