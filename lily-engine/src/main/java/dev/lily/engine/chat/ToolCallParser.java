package dev.lily.engine.chat;

import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.JsonNodeFactory;
import tools.jackson.databind.node.ObjectNode;

/**
 * Parses one call, from after its {@code <function=NAME>}, token by token.
 *
 * <p>The format has no escapes, so a value may contain the very tags that end it. A closing tag
 * counts where the template puts it: on its own line, or after a value that began on the line of
 * its opening tag; and only if what may follow it follows, namely after {@code </parameter>}
 * another parameter or the end of the function, after {@code </function>} the end of the block, and
 * after {@code </tool_call>} another call or the end of the answer. Opening tags at the start of a
 * line inside a value are counted, and their closing tags are part of the value. Closing tags that
 * stand elsewhere or are missing are made up for where the rest of the format leaves no doubt.
 *
 * <p>What has been passed over is never read again, except what follows a complete call.
 */
final class ToolCallParser implements CallParser {
  /** The closing tags seen in a row, with only whitespace between them and after the last. */
  private enum Closed {
    NOTHING,
    PARAMETER,
    FUNCTION,
    CALL
  }

  private static final int NONE = -1;
  private static final int TAGS =
      Tag.CALL_OPEN.bit
          | Tag.CALL_CLOSE.bit
          | Tag.FUNCTION_OPEN.bit
          | Tag.FUNCTION_CLOSE.bit
          | Tag.PARAMETER_OPEN.bit
          | Tag.PARAMETER_CLOSE.bit;

  private final TagLexer lexer;
  private final String name;
  private final ArgumentTyper typer;
  private final boolean wrapped;
  private final boolean patient;
  private final ObjectNode arguments = JsonNodeFactory.instance.objectNode();

  private @Nullable String key;
  private int valueStart;
  private int indentation;
  private int nestedCalls;
  private int nestedFunctions;
  private int nestedParameters;

  /** The end of an opening tag that counts as nested only if it is closed on its own line. */
  private int nestedInline = NONE;

  /** Whether a {@code <tool_call>} within a line counts as nested if a function follows. */
  private boolean opensCallInline;

  private Closed closed = Closed.NOTHING;

  /** Where the value ends if {@link #closed} counts. */
  private int valueEnd;

  /** Where the text goes on if {@link #closed} counts. */
  private int callEnd;

  private boolean closesNested;
  private boolean parameterClosedInPlace;
  private boolean functionClosedInPlace;
  private boolean callClosedInPlace;

  /** The end of a call that is complete unless its closing tags turn out to be part of a value. */
  private int likelyCallEnd = NONE;

  private int likelyValueEnd;
  private boolean likelyBlockClosed;
  private int resumeAt;

  /**
   * @param tool the request's tool of that name, if there is one
   * @param wrapped whether the call is in a {@code <tool_call>} block
   * @param patient whether text after the call keeps it open until an answer's end or another call
   *     shows that the closing tags were not part of a value
   */
  ToolCallParser(
      TagLexer lexer,
      String name,
      @Nullable ToolDefinition tool,
      boolean wrapped,
      boolean patient) {
    this.lexer = lexer;
    this.name = name;
    this.typer = new ArgumentTyper(tool == null ? arguments.objectNode() : tool.parameters());
    this.wrapped = wrapped;
    this.patient = patient;
  }

  @Override
  public int tags() {
    return TAGS;
  }

  @Override
  public Verdict accept() {
    if (key == null) {
      return beforeParameters();
    }
    return switch (lexer.tag()) {
      case TEXT -> {
        if (!lexer.isBlank()) {
          reopen();
        }
        yield Verdict.OPEN;
      }
      case PARAMETER_OPEN -> parameterOpened(lexer.name());
      case PARAMETER_CLOSE -> parameterClosed();
      case FUNCTION_OPEN -> functionOpened();
      case FUNCTION_CLOSE -> functionClosed();
      case CALL_OPEN -> callOpened();
      case CALL_CLOSE -> callClosed();
      case THINK_OPEN, THINK_CLOSE -> {
        reopen();
        yield Verdict.OPEN;
      }
    };
  }

  @Override
  public Verdict finish(boolean truncated) {
    if (key == null) {
      return truncated ? Verdict.INCOMPLETE : endBeforeParameters(lexer.length());
    }
    if (closed == Closed.CALL && isCertain()) {
      return completeWithValue(valueEnd, callEnd);
    }
    if (likelyCallEnd != NONE && (likelyBlockClosed || !truncated)) {
      return completeWithValue(likelyValueEnd, likelyCallEnd);
    }
    if (truncated || closed == Closed.NOTHING || (closesNested && closed != Closed.CALL)) {
      return Verdict.INCOMPLETE;
    }
    if (closed == Closed.PARAMETER) {
      endValue(valueEnd);
      return typer.hasRequired(arguments) ? complete(lexer.length()) : Verdict.INCOMPLETE;
    }
    return completeWithValue(valueEnd, closed == Closed.CALL ? callEnd : lexer.length());
  }

  @Override
  public ToolCall call() {
    return new ToolCall(ToolCallIds.next(), name, arguments);
  }

  @Override
  public int resumeAt() {
    return resumeAt;
  }

  private Verdict beforeParameters() {
    return switch (lexer.tag()) {
      case TEXT -> lexer.isBlank() ? Verdict.OPEN : notACall();
      case PARAMETER_OPEN -> {
        startValue(lexer.name());
        yield Verdict.OPEN;
      }
      case FUNCTION_CLOSE -> complete(lexer.end());
      case CALL_CLOSE -> wrapped ? complete(lexer.start()) : notACall();
      case CALL_OPEN, FUNCTION_OPEN -> endBeforeParameters(lexer.start());
      case PARAMETER_CLOSE, THINK_OPEN, THINK_CLOSE -> notACall();
    };
  }

  /** An opening tag alone may be a call without arguments, or just be mentioned. */
  private Verdict endBeforeParameters(int end) {
    resumeAt = end;
    return wrapped && typer.hasRequired(arguments) ? Verdict.COMPLETE : Verdict.NOT_A_CALL;
  }

  private Verdict parameterOpened(String parameter) {
    boolean inPlace = isInPlace();
    if (closed == Closed.PARAMETER && !closesNested && mayFollow(parameter)) {
      endValue(valueEnd);
      startValue(parameter);
    } else if (inPlace && closed == Closed.NOTHING && isOutermost() && isAwaited(parameter)) {
      endValue(lexer.start());
      startValue(parameter);
    } else {
      reopen();
      nestedInline = inPlace && !lexer.endsLine() ? lexer.end() : NONE;
      if (inPlace && lexer.endsLine()) {
        nestedParameters++;
      }
    }
    return Verdict.OPEN;
  }

  /** A declared parameter may follow where either tag is in place, an invented one if both are. */
  private boolean mayFollow(String parameter) {
    boolean inPlace = isInPlace() || valueStartsInline();
    boolean expected = typer.declares(parameter) || !typer.declaresAny();
    return expected ? parameterClosedInPlace || inPlace : parameterClosedInPlace && inPlace;
  }

  /** Whether a parameter's opening tag shows that the closing tag before it is missing. */
  private boolean isAwaited(String parameter) {
    return (lexer.endsLine() || valueStartsInline())
        && typer.declares(parameter)
        && !parameter.equals(key)
        && !arguments.has(parameter);
  }

  private Verdict parameterClosed() {
    reopen();
    boolean inline = nestedInline != NONE && !lexer.hasLineBreak(nestedInline, lexer.start());
    closesNested = inline || nestedParameters > 0;
    if (!inline && nestedParameters > 0) {
      nestedParameters--;
    }
    nestedInline = NONE;
    closed = Closed.PARAMETER;
    valueEnd = lexer.start();
    parameterClosedInPlace = isInPlace() || valueStartsInline();
    return Verdict.OPEN;
  }

  private Verdict functionOpened() {
    if ((closed == Closed.FUNCTION && parameterClosedInPlace && !closesNested)
        || (closed == Closed.CALL && isCertain())) {
      return completeWithValue(valueEnd, lexer.start());
    }
    if (likelyCallEnd != NONE) {
      return completeWithValue(likelyValueEnd, likelyCallEnd);
    }
    if (opensCallInline || isInPlace()) {
      nestedFunctions++;
    }
    if (opensCallInline) {
      nestedCalls++;
    }
    reopen();
    return Verdict.OPEN;
  }

  private Verdict functionClosed() {
    boolean nested = nestedFunctions > 0 && (closed != Closed.PARAMETER || closesNested);
    if (closed == Closed.PARAMETER) {
      closed = Closed.FUNCTION;
      functionClosedInPlace = isInPlace();
      callEnd = lexer.end();
      if (!wrapped && !nested && (parameterClosedInPlace || functionClosedInPlace)) {
        return completeWithValue(valueEnd, lexer.end());
      }
    } else {
      reopen();
      if (!nested) {
        closeWithoutParameter(Closed.FUNCTION);
      }
    }
    if (nested && --nestedFunctions == 0) {
      nestedParameters = 0;
    }
    return Verdict.OPEN;
  }

  private Verdict callOpened() {
    if ((closed == Closed.FUNCTION && parameterClosedInPlace && !closesNested)
        || (closed == Closed.CALL && isCertain())
        || (closed == Closed.CALL && callClosedInPlace && isInPlace())) {
      return completeWithValue(valueEnd, lexer.start());
    }
    if (likelyCallEnd != NONE) {
      return completeWithValue(likelyValueEnd, likelyCallEnd);
    }
    reopen();
    if (isInPlace()) {
      nestedCalls++;
    } else {
      opensCallInline = true;
    }
    return Verdict.OPEN;
  }

  private Verdict callClosed() {
    boolean closesOther = closed == Closed.NOTHING || closed == Closed.CALL;
    if (nestedCalls > 0 && (closesOther || closesNested)) {
      reopen();
      if (--nestedCalls == 0) {
        nestedFunctions = 0;
        nestedParameters = 0;
      }
      return Verdict.OPEN;
    }
    if (closesOther) {
      reopen();
      closeWithoutParameter(Closed.CALL);
    } else {
      functionClosedInPlace &= closed == Closed.FUNCTION;
      parameterClosedInPlace &= closed == Closed.FUNCTION;
      closed = Closed.CALL;
    }
    callEnd = lexer.start();
    callClosedInPlace = isInPlace();
    return isCertain() && !patient ? completeWithValue(valueEnd, callEnd) : Verdict.OPEN;
  }

  /** Whether all three closing tags are there and stand where the template puts them. */
  private boolean isCertain() {
    return parameterClosedInPlace || (functionClosedInPlace && callClosedInPlace);
  }

  private void closeWithoutParameter(Closed tags) {
    closed = tags;
    valueEnd = lexer.start();
    closesNested = false;
    parameterClosedInPlace = false;
    functionClosedInPlace = false;
  }

  /** Something follows that must not: the closing tags seen last are probably part of the value. */
  private void reopen() {
    boolean likely =
        closed == Closed.FUNCTION
            ? parameterClosedInPlace && functionClosedInPlace && !closesNested
            : closed == Closed.CALL && isCertain();
    if (likely) {
      likelyBlockClosed = closed == Closed.CALL;
      likelyCallEnd = callEnd;
      likelyValueEnd = valueEnd;
    }
    closed = Closed.NOTHING;
    opensCallInline = false;
  }

  private boolean isOutermost() {
    return nestedFunctions == 0 && nestedParameters == 0;
  }

  /** Whether the current tag starts its line like the tags around it. */
  private boolean isInPlace() {
    int indentation = lexer.indentation();
    boolean ofParameter = lexer.tag() == Tag.PARAMETER_OPEN || lexer.tag() == Tag.PARAMETER_CLOSE;
    return ofParameter
        ? indentation == this.indentation
        : indentation >= 0 && indentation <= this.indentation;
  }

  private boolean valueStartsInline() {
    return !TagLexer.isLineBreak(lexer.charAt(valueStart));
  }

  private void startValue(String parameter) {
    key = parameter;
    valueStart = lexer.end();
    indentation = Math.max(0, lexer.indentation());
    nestedCalls = 0;
    nestedFunctions = 0;
    nestedParameters = 0;
    nestedInline = NONE;
    opensCallInline = false;
    closed = Closed.NOTHING;
    likelyCallEnd = NONE;
  }

  /** One line break at either end belongs to the format. */
  private void endValue(int end) {
    int from = valueStart;
    int to = end;
    boolean windows =
        to - from >= 2 && lexer.charAt(from) == '\r' && lexer.charAt(from + 1) == '\n';
    if (windows) {
      from += 2;
    } else if (from < to && lexer.charAt(from) == '\n') {
      from++;
    }
    if (from < to && lexer.charAt(to - 1) == '\n') {
      to--;
      if (windows && from < to && lexer.charAt(to - 1) == '\r') {
        to--;
      }
    }
    if (key != null) {
      JsonNode value = typer.type(key, lexer.substring(from, to));
      arguments.set(key, value);
    }
  }

  private Verdict completeWithValue(int end, int callEnd) {
    endValue(end);
    return complete(callEnd);
  }

  private Verdict complete(int callEnd) {
    resumeAt = callEnd;
    return Verdict.COMPLETE;
  }

  private Verdict notACall() {
    resumeAt = lexer.start();
    return Verdict.NOT_A_CALL;
  }
}
