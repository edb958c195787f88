package dev.lily.spring.openai.dto;

import com.fasterxml.jackson.annotation.JsonInclude;
import org.jspecify.annotations.Nullable;

/**
 * A call of a function, whole in a message or in pieces over the deltas of a stream; absent
 * components are not written.
 *
 * @param index the call's place among the choice's calls; in deltas only
 * @param id in the first delta only
 * @param type in the first delta only, always {@code function}
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
public record ToolCall(
    @Nullable Integer index, @Nullable String id, @Nullable String type, Function function) {

  private static final String FUNCTION = "function";

  /**
   * The function.
   *
   * @param name in the first delta only
   * @param arguments JSON text of an object, or a piece of it
   */
  @JsonInclude(JsonInclude.Include.NON_NULL)
  public record Function(@Nullable String name, String arguments) {}

  /** A call in a message. */
  public static ToolCall whole(String id, String name, String arguments) {
    return new ToolCall(null, id, FUNCTION, new Function(name, arguments));
  }

  /** The first delta of a call, still without arguments. */
  public static ToolCall opening(int index, String id, String name) {
    return new ToolCall(index, id, FUNCTION, new Function(name, ""));
  }

  /** A later delta of a call. */
  public static ToolCall arguments(int index, String arguments) {
    return new ToolCall(index, null, null, new Function(null, arguments));
  }
}
