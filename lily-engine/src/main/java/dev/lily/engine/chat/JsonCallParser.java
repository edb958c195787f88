package dev.lily.engine.chat;

import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.core.json.JsonReadFeature;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.JsonNodeFactory;
import tools.jackson.databind.node.ObjectNode;

/**
 * Parses a call that is a JSON object, <code>{"name": …, "arguments": {…}}</code>, as related
 * models write it. Its values have their types already.
 */
final class JsonCallParser implements CallParser {
  private static final JsonMapper JSON =
      JsonMapper.builder().enable(JsonReadFeature.ALLOW_UNESCAPED_CONTROL_CHARS).build();

  private final TagLexer lexer;
  private final int start;
  private int depth;
  private boolean inString;
  private boolean escaped;
  private int resumeAt;
  private String name = "";
  private ObjectNode arguments = JsonNodeFactory.instance.objectNode();

  /**
   * @param start the offset of the opening brace, which is the lexer's next token
   */
  JsonCallParser(TagLexer lexer, int start) {
    this.lexer = lexer;
    this.start = start;
  }

  @Override
  public int tags() {
    return 0;
  }

  @Override
  public Verdict accept() {
    for (int i = lexer.start(); i < lexer.end(); i++) {
      char c = lexer.charAt(i);
      resumeAt = i;
      if (inString) {
        inString = escaped || c != '"';
        escaped = !escaped && c == '\\';
        continue;
      }
      switch (c) {
        case '"' -> inString = true;
        case '{', '[' -> depth++;
        case '}', ']' -> depth--;
        default -> {
          if (!mayBeOutsideStrings(c)) {
            return Verdict.NOT_A_CALL;
          }
        }
      }
      if (depth == 0) {
        resumeAt = i + 1;
        return read() ? Verdict.COMPLETE : Verdict.NOT_A_CALL;
      }
    }
    return Verdict.OPEN;
  }

  @Override
  public Verdict finish(boolean truncated) {
    return Verdict.INCOMPLETE;
  }

  @Override
  public ToolCall call() {
    return new ToolCall(ToolCallIds.next(), name, arguments);
  }

  @Override
  public int resumeAt() {
    return resumeAt;
  }

  private static boolean mayBeOutsideStrings(char c) {
    return TagLexer.isSpace(c)
        || (c >= 'a' && c <= 'z')
        || (c >= '0' && c <= '9')
        || ",:+-.E".indexOf(c) >= 0;
  }

  private boolean read() {
    JsonNode json = parse(lexer.substring(start, resumeAt));
    if (json == null || !json.path("name").isString()) {
      return false;
    }
    name = json.path("name").stringValue();
    JsonNode given = json.has("arguments") ? json.path("arguments") : json.path("parameters");
    if (given.isString()) {
      given = parse(given.stringValue());
    }
    if (given instanceof ObjectNode object) {
      arguments = object;
    } else if (given != null && !given.isNull() && !given.isMissingNode()) {
      return false;
    }
    return given != null && Tag.FUNCTION_OPEN.isName(name);
  }

  private static @Nullable JsonNode parse(String text) {
    try {
      return JSON.readTree(text);
    } catch (JacksonException _) {
      return null;
    }
  }
}
