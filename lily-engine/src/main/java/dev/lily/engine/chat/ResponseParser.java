package dev.lily.engine.chat;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Splits a model's text into reasoning, answer and tool calls, however the text is cut. No part
 * ever contains a piece of a tag that counts. Takes time linear in the text; keeps what is not
 * decided yet. One per answer; not thread-safe.
 *
 * <ul>
 *   <li>The first {@code </think>} ends the reasoning; later ones are text. Line breaks around it
 *       and at the start of the reasoning are dropped, and so is a repeated {@code <think>} there.
 *       Without a {@code </think>} everything is reasoning.
 *   <li>A call written inside the reasoning counts only if the model itself ends its answer with it
 *       (or with several), without {@code </think>} and without text after it. Otherwise it was
 *       only thought about, and is reasoning. Such calls are therefore held back.
 *   <li>Whitespace before a call is dropped; after a call it is kept only between two pieces of
 *       answer text.
 *   <li>A call's last value may contain closing tags. A call with arguments is therefore given out
 *       when the next one or the end of the answer shows where it ended, and text after it too.
 *   <li>{@code <tool_call>} that no function follows, a function's name with a character that none
 *       has, and {@code <function=NAME>} alone with a name that is no tool's are text.
 *   <li>An answer that ends inside a call gives {@link ResponsePart.IncompleteToolCall}. Missing
 *       closing tags are made up for if the answer was not cut and no value is open.
 *   <li>Without tools in the request nothing is a call: markup of calls is text.
 * </ul>
 */
public final class ResponseParser {
  private enum Phase {
    TEXT,
    /** After {@code <tool_call>}, while what follows has to decide whether it is one. */
    OPENED,
    CALL
  }

  private final Map<String, ToolDefinition> tools = new HashMap<>();
  private final Consumer<ResponsePart> sink;
  private final TagLexer lexer = new TagLexer();
  private final List<ResponsePart> held = new ArrayList<>();

  private Phase phase = Phase.TEXT;
  private boolean reasoning;
  private boolean finished;
  private @Nullable CallParser call;
  private int callStart;

  /** Text of the current kind that is not given out yet; behind its end only whitespace follows. */
  private int textStart;

  private int textEnd;

  /** Whether no text of the current kind has come yet. */
  private boolean leading;

  /** Whether only whitespace has come since a call. */
  private boolean afterCall;

  private boolean inBlock;
  private boolean answered;

  /**
   * @param tools of the request; they type the arguments
   * @param thinking whether the text starts inside the reasoning
   * @param sink takes the parts in order
   */
  public ResponseParser(List<ToolDefinition> tools, boolean thinking, Consumer<ResponsePart> sink) {
    for (ToolDefinition tool : tools) {
      this.tools.putIfAbsent(tool.name(), tool);
    }
    this.reasoning = thinking;
    this.leading = thinking;
    this.sink = sink;
  }

  /**
   * Takes the next piece of the answer.
   *
   * @throws IllegalStateException after {@link #finish}
   */
  public void accept(String text) {
    if (finished) {
      throw new IllegalStateException("The answer has been finished; it takes no more text");
    }
    lexer.append(text);
    process();
    if (phase == Phase.TEXT && held.isEmpty()) {
      int discarded = lexer.discard(textStart);
      textStart -= discarded;
      textEnd -= discarded;
    }
  }

  /**
   * Ends the answer and releases what was held back. A second call does nothing.
   *
   * @param truncated whether the answer was cut by a limit, so that an open call is incomplete
   */
  public void finish(boolean truncated) {
    if (finished) {
      return;
    }
    finished = true;
    if (truncated && reasoning) {
      held.clear();
      phase = Phase.TEXT;
      addText(lexer.length());
      flush();
      return;
    }
    if (truncated && (phase == Phase.OPENED || startsCallOfKnownTool())) {
      endIncomplete(phase == Phase.OPENED ? callStart : lexer.next());
      return;
    }
    lexer.finish();
    if (!truncated) {
      process();
    }
    while (phase == Phase.CALL && call != null) {
      switch (call.finish(truncated)) {
        case COMPLETE -> {
          completeCall(call);
          process();
        }
        case NOT_A_CALL -> giveUp(call.resumeAt());
        case OPEN, INCOMPLETE -> endIncomplete(callStart);
      }
    }
    process();
    if (phase == Phase.OPENED) {
      giveUp(lexer.length());
    }
    flush();
    if (!reasoning && !afterCall && textStart < lexer.length()) {
      addText(lexer.length());
      textEnd = lexer.length();
      flush();
    }
    held.forEach(sink);
    reasoning = false;
  }

  /** From here on nothing is a call, whatever it looks like. */
  public void expectNoCalls() {
    tools.clear();
  }

  /** Whether the text so far is inside the reasoning. */
  public boolean isReasoning() {
    return reasoning;
  }

  private void process() {
    while (lexer.advance(tags())) {
      switch (phase) {
        case TEXT -> acceptText();
        case OPENED -> acceptOpened();
        case CALL -> acceptInCall();
      }
    }
    flush();
  }

  /** Whether what is held back is the beginning of a tag that calls one of the tools. */
  private boolean startsCallOfKnownTool() {
    String rest = lexer.substring(lexer.next(), lexer.length());
    String opening = Tag.FUNCTION_OPEN.literal;
    return phase == Phase.TEXT
        && rest.startsWith(opening)
        && tools.keySet().stream()
            .anyMatch(name -> name.startsWith(rest.substring(opening.length())));
  }

  private int tags() {
    int tags = 0;
    if (phase == Phase.CALL && call != null) {
      tags = call.tags();
    } else if (!tools.isEmpty()) {
      tags = Tag.CALL_OPEN.bit;
      if (!reasoning || phase == Phase.OPENED || inBlock) {
        tags |= Tag.FUNCTION_OPEN.bit;
      }
      if (afterCall) {
        tags |= Tag.CALL_CLOSE.bit;
      }
    }
    if (reasoning) {
      tags |= Tag.THINK_CLOSE.bit;
      if (leading && phase == Phase.TEXT) {
        tags |= Tag.THINK_OPEN.bit;
      }
    }
    return tags;
  }

  private void acceptText() {
    switch (lexer.tag()) {
      case TEXT -> {
        if (!lexer.isBlank()) {
          addText(lexer.end());
        } else if (reasoning && !leading && held.isEmpty() && lexer.lineEnd() > lexer.start()) {
          textEnd = lexer.lineEnd();
        }
      }
      case THINK_OPEN -> skipTo(lexer.end());
      case THINK_CLOSE -> endReasoning();
      case CALL_OPEN -> {
        flush();
        callStart = lexer.start();
        phase = Phase.OPENED;
        skipLeading(callStart);
      }
      case CALL_CLOSE -> {
        inBlock = false;
        if (!reasoning) {
          skipTo(lexer.end());
        }
      }
      case FUNCTION_OPEN -> {
        if (inBlock || tools.containsKey(lexer.name())) {
          flush();
          callStart = lexer.start();
          openCall(inBlock);
        } else {
          addText(lexer.end());
        }
      }
      case FUNCTION_CLOSE, PARAMETER_OPEN, PARAMETER_CLOSE -> addText(lexer.end());
    }
  }

  private void acceptOpened() {
    switch (lexer.tag()) {
      case FUNCTION_OPEN -> openCall(true);
      case TEXT -> {
        if (!lexer.isBlank()) {
          openJsonCall();
        }
      }
      case THINK_OPEN,
          THINK_CLOSE,
          CALL_OPEN,
          CALL_CLOSE,
          FUNCTION_CLOSE,
          PARAMETER_OPEN,
          PARAMETER_CLOSE ->
          giveUp(lexer.start());
    }
  }

  private void openJsonCall() {
    int start = lexer.start();
    while (TagLexer.isSpace(lexer.charAt(start))) {
      start++;
    }
    if (reasoning || lexer.charAt(start) != '{') {
      giveUp(lexer.start());
      return;
    }
    lexer.moveTo(start);
    call = new JsonCallParser(lexer, start);
    phase = Phase.CALL;
  }

  private void acceptInCall() {
    if (call == null) {
      return;
    }
    if (reasoning && lexer.tag() == Tag.THINK_CLOSE) {
      giveUp(lexer.start());
      return;
    }
    switch (call.accept()) {
      case OPEN -> {}
      case COMPLETE -> completeCall(call);
      case NOT_A_CALL, INCOMPLETE -> giveUp(call.resumeAt());
    }
  }

  private void openCall(boolean wrapped) {
    String name = lexer.name();
    inBlock = wrapped;
    call = new ToolCallParser(lexer, name, tools.get(name), wrapped, !reasoning);
    phase = Phase.CALL;
  }

  private void completeCall(CallParser complete) {
    emit(new ResponsePart.CalledTool(complete.call()));
    phase = Phase.TEXT;
    lexer.moveTo(complete.resumeAt());
    afterCall = true;
    if (!reasoning) {
      skipTo(complete.resumeAt());
    }
  }

  private void endIncomplete(int start) {
    phase = Phase.TEXT;
    flush();
    emit(new ResponsePart.IncompleteToolCall(lexer.substring(start, lexer.length())));
    afterCall = true;
    lexer.moveTo(lexer.length());
    skipTo(lexer.length());
  }

  /** What looked like a call is text, up to an offset at which the text goes on. */
  private void giveUp(int end) {
    phase = Phase.TEXT;
    addText(end);
    lexer.moveTo(end);
  }

  private void endReasoning() {
    if (!held.isEmpty()) {
      addText(lexer.start());
    }
    flush();
    reasoning = false;
    leading = true;
    afterCall = false;
    inBlock = false;
    skipTo(lexer.end());
  }

  private void skipTo(int offset) {
    textStart = offset;
    textEnd = offset;
  }

  /** The text up to an offset, trailing whitespace aside, belongs to the current kind. */
  private void addText(int end) {
    held.clear();
    skipLeading(end);
    if (!reasoning && afterCall && !answered) {
      while (textStart < end && TagLexer.isSpace(lexer.charAt(textStart))) {
        textStart++;
      }
    }
    afterCall = false;
    inBlock = false;
    textEnd = Math.max(textStart, textEnd);
    int ink = end;
    while (ink > textEnd
        && (reasoning
            ? TagLexer.isLineBreak(lexer.charAt(ink - 1))
            : TagLexer.isSpace(lexer.charAt(ink - 1)))) {
      ink--;
    }
    textEnd = ink;
  }

  private void skipLeading(int end) {
    while (leading && textStart < end && TagLexer.isLineBreak(lexer.charAt(textStart))) {
      textStart++;
    }
    leading = false;
    textEnd = Math.max(textStart, textEnd);
  }

  private void flush() {
    if (textStart == textEnd) {
      return;
    }
    String text = lexer.substring(textStart, textEnd);
    textStart = textEnd;
    if (reasoning) {
      sink.accept(new ResponsePart.ReasoningText(text));
    } else {
      answered = true;
      sink.accept(new ResponsePart.AnswerText(text));
    }
  }

  private void emit(ResponsePart part) {
    if (reasoning) {
      held.add(part);
    } else {
      sink.accept(part);
    }
  }
}
