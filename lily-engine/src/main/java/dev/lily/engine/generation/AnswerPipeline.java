package dev.lily.engine.generation;

import dev.lily.engine.chat.ResponseParser;
import dev.lily.engine.chat.ResponsePart;
import dev.lily.engine.chat.ToolDefinition;
import dev.lily.engine.tokenizer.StreamingDecoder;
import dev.lily.engine.tokenizer.Tokenizer;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The way of one answer from tokens to parts: bytes to text, text to reasoning, answer and tool
 * calls, and the search for stop strings in the answer. The search comes last, so that a stop
 * string such as a line break neither cuts the reasoning short nor breaks a tool call. Not
 * thread-safe.
 */
final class AnswerPipeline {
  private final StreamingDecoder decoder;
  private final ResponseParser parser;
  private final @Nullable StopStringMatcher stops;
  private final List<ResponsePart> parts = new ArrayList<>();
  private boolean watching;
  private int toolCalls;

  /**
   * @param thinking whether the answer starts inside the reasoning
   */
  AnswerPipeline(
      Tokenizer tokenizer, List<ToolDefinition> tools, boolean thinking, List<String> stopStrings) {
    decoder = new StreamingDecoder(tokenizer);
    parser = new ResponseParser(tools, thinking, this::take);
    stops = stopStrings.isEmpty() ? null : new StopStringMatcher(stopStrings);
  }

  /**
   * Takes the next token, which must not be a stop token.
   *
   * @param watchStops whether stop strings count from here on
   */
  void accept(int token, boolean watchStops) {
    watching = watchStops;
    String text = decoder.accept(token);
    if (!text.isEmpty()) {
      parser.accept(text);
    }
  }

  /**
   * Ends the answer and releases what was held back.
   *
   * @param truncated whether a limit cut it off
   */
  void finish(boolean truncated) {
    String text = decoder.finish();
    if (!text.isEmpty()) {
      parser.accept(text);
    }
    parser.finish(truncated);
    releaseHeld();
  }

  private void take(ResponsePart part) {
    if (stopped()) {
      return;
    }
    switch (part) {
      case ResponsePart.AnswerText answer -> takeAnswer(answer);
      case ResponsePart.ReasoningText _, ResponsePart.IncompleteToolCall _ -> {
        releaseHeld();
        parts.add(part);
      }
      case ResponsePart.CalledTool _ -> {
        releaseHeld();
        parts.add(part);
        toolCalls++;
      }
    }
  }

  private void takeAnswer(ResponsePart.AnswerText answer) {
    if (stops == null || !watching) {
      parts.add(answer);
      return;
    }
    String text = stops.accept(answer.text());
    if (!text.isEmpty()) {
      parts.add(new ResponsePart.AnswerText(text));
    }
  }

  private void releaseHeld() {
    if (stops != null) {
      String text = stops.release();
      if (!text.isEmpty()) {
        parts.add(new ResponsePart.AnswerText(text));
      }
    }
  }

  /** From here on nothing is a call, whatever it looks like. */
  void expectNoCalls() {
    parser.expectNoCalls();
  }

  /** Whether a stop string ended the answer. */
  boolean stopped() {
    return stops != null && stops.matched();
  }

  /** Whether the next token belongs to the reasoning. */
  boolean isReasoning() {
    return parser.isReasoning();
  }

  /** Complete tool calls so far. */
  int toolCalls() {
    return toolCalls;
  }

  /** The parts since the last call; immutable. */
  List<ResponsePart> takeParts() {
    if (parts.isEmpty()) {
      return List.of();
    }
    List<ResponsePart> taken = List.copyOf(parts);
    parts.clear();
    return taken;
  }
}
