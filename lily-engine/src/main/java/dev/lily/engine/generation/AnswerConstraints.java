package dev.lily.engine.generation;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;

import dev.lily.engine.chat.ToolDefinition;
import dev.lily.engine.constraint.AnswerShape;
import dev.lily.engine.constraint.Grammar;
import dev.lily.engine.constraint.InvalidConstraintException;
import dev.lily.engine.constraint.TokenVocabulary;
import dev.lily.engine.tokenizer.Tokenizer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Finds what a request constrains and compiles it, on the caller's thread. The forms compiled last
 * are kept, because requests of an application repeat them. Thread-safe.
 */
public final class AnswerConstraints {
  /** Most bytes of compiled forms kept. */
  private static final long MAX_BYTES = 64L << 20;

  private static final List<String> MARKS = List.of("<tool_call>", "</tool_call>", "</think>");

  private final Tokenizer tokenizer;
  private final int vocabularySize;
  private final int[] stopTokens;
  private final int callStart;
  private final ReentrantLock lock = new ReentrantLock();
  private final Map<AnswerShape, Grammar> compiled = new LinkedHashMap<>(16, 0.75f, true);
  private long compiledBytes;
  private @Nullable TokenVocabulary vocabulary;

  /**
   * @param vocabularySize ids that the model gives logits for
   * @param stopTokens ids that end an answer
   */
  public AnswerConstraints(Tokenizer tokenizer, int vocabularySize, int[] stopTokens) {
    this.tokenizer = tokenizer;
    this.vocabularySize = vocabularySize;
    this.stopTokens = stopTokens.clone();
    callStart = tokenizer.addedToken(MARKS.getFirst()).orElse(AnswerConstraint.UNKNOWN);
  }

  /**
   * What a request constrains, or {@code null} if nothing.
   *
   * @param thinking whether the answer begins inside the reasoning
   * @throws InvalidRequestException if it is wrong, contradicts itself or is not in the subset
   */
  public @Nullable AnswerConstraint of(GenerationRequest request, boolean thinking) {
    List<ToolDefinition> tools = callable(request);
    boolean callsFollowSchemas =
        !(request.toolChoice() instanceof ToolChoice.Auto)
            || !request.parallelToolCalls()
            || tools.stream().anyMatch(AnswerConstraints::isStrict);
    if (request.output() == null && (tools.isEmpty() || !callsFollowSchemas)) {
      return null;
    }
    if (request.minTokens() > 0) {
      throw new InvalidRequestException(
          "minTokens",
          "minTokens is %d, but the answer is constrained and ends when it is complete; leave it out"
              .formatted(request.minTokens()));
    }
    boolean onlyCalls = !(request.toolChoice() instanceof ToolChoice.Auto);
    AnswerShape shape =
        new AnswerShape(
            markup(),
            thinking,
            request.output(),
            tools.stream().map(tool -> tool(request, tool)).toList(),
            onlyCalls ? AnswerShape.Calls.REQUIRED : AnswerShape.Calls.ALLOWED,
            request.parallelToolCalls());
    try {
      Grammar grammar = compile(shape);
      return new AnswerConstraint(
          grammar, vocabulary(), request.output() == null ? AnswerConstraint.UNKNOWN : callStart);
    } catch (InvalidConstraintException e) {
      String parameter = e.path().startsWith("/tools") ? "tools" : "output";
      throw new InvalidRequestException(parameter, String.valueOf(e.getMessage()), e);
    }
  }

  private static boolean isStrict(ToolDefinition tool) {
    return tool.json().path("function").path("strict").asBoolean(false);
  }

  private static List<ToolDefinition> callable(GenerationRequest request) {
    List<ToolDefinition> tools = request.conversation().tools();
    return switch (request.toolChoice()) {
      case ToolChoice.Auto() -> tools;
      case ToolChoice.Required() -> {
        if (tools.isEmpty()) {
          throw new InvalidRequestException(
              "toolChoice", "A tool call is required, but the request has no tools");
        }
        yield tools;
      }
      case ToolChoice.Named(String name) -> {
        for (ToolDefinition tool : tools) {
          if (tool.name().equals(name)) {
            yield List.of(tool);
          }
        }
        throw new InvalidRequestException(
            "toolChoice",
            "The tool '%s' is to be called, but the request has no tool of that name"
                .formatted(name));
      }
    };
  }

  private static AnswerShape.Tool tool(GenerationRequest request, ToolDefinition tool) {
    int index = request.conversation().tools().indexOf(tool);
    return new AnswerShape.Tool(
        tool.name(), tool.parameters(), "/tools/" + index + "/function/parameters");
  }

  private AnswerShape.Markup markup() {
    return new AnswerShape.Markup(mark(0), mark(1), mark(2));
  }

  /** A mark that is a token of its own is taken as that token, otherwise as its text. */
  private String mark(int index) {
    return tokenizer.addedToken(MARKS.get(index)).isPresent()
        ? new String(new byte[] {TokenVocabulary.marker(index)}, ISO_8859_1)
        : new String(MARKS.get(index).getBytes(UTF_8), ISO_8859_1);
  }

  private Grammar compile(AnswerShape shape) {
    lock.lock();
    try {
      Grammar known = compiled.get(shape);
      if (known != null) {
        return known;
      }
    } finally {
      lock.unlock();
    }
    Grammar grammar = shape.compile();
    lock.lock();
    try {
      Grammar known = compiled.putIfAbsent(shape, grammar);
      if (known != null) {
        return known;
      }
      compiledBytes += grammar.bytes();
      var oldest = compiled.entrySet().iterator();
      while (compiledBytes > MAX_BYTES && compiled.size() > 1) {
        compiledBytes -= oldest.next().getValue().bytes();
        oldest.remove();
      }
      return grammar;
    } finally {
      lock.unlock();
    }
  }

  /** Arranged when the first constrained request comes. */
  private TokenVocabulary vocabulary() {
    lock.lock();
    try {
      if (vocabulary == null) {
        vocabulary = arrange();
      }
      return vocabulary;
    } finally {
      lock.unlock();
    }
  }

  /** Added tokens steer a model and are no text, so an answer never has them. */
  private TokenVocabulary arrange() {
    byte[] @Nullable [] texts = new byte[vocabularySize] @Nullable [];
    for (int id = 0; id < Math.min(vocabularySize, tokenizer.vocabularySize()); id++) {
      texts[id] = tokenizer.isText(id) ? tokenizer.bytes(id) : null;
    }
    List<Integer> markers = new ArrayList<>();
    for (String mark : MARKS) {
      markers.add(tokenizer.addedToken(mark).orElse(TokenVocabulary.NO_MARKER));
    }
    return new TokenVocabulary(texts, stopTokens, markers);
  }
}
