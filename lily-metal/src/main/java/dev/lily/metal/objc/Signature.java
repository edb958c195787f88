package dev.lily.metal.objc;

import java.util.Locale;

/**
 * The shape in which a message's arguments travel: V nothing, L one machine word (object, pointer,
 * integer), Z a BOOL, D a double, S a struct of three words, R a range of two words. Result first.
 */
public enum Signature {
  V,
  V_L,
  V_LL,
  V_LLL,
  V_SS,
  V_LLS,
  V_LLR,
  L,
  L_L,
  L_LL,
  L_LLL,
  L_LLLL,
  Z,
  Z_L,
  Z_S,
  D;

  /**
   * The shape of a method.
   *
   * @param types Objective-C type encodings, result first, without receiver and selector
   * @throws IllegalArgumentException if no message handle has this shape
   */
  static Signature of(String types) {
    StringBuilder shape = new StringBuilder();
    for (int at = 0; at < types.length(); ) {
      int end = endOfType(types, at);
      if (shape.length() == 1) {
        shape.append('_');
      }
      shape.append(shapeOf(types.substring(at, end)));
      at = end;
    }
    try {
      return valueOf(shape.toString());
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException(
          "No message handle for types '" + types + "' (shape " + shape + ")", e);
    }
  }

  /** Index after the type that starts at the given one. */
  static int endOfType(String types, int start) {
    char c = types.charAt(start);
    if (c == '^') {
      return endOfType(types, start + 1);
    }
    if (c == '{') {
      return types.indexOf('}', start) + 1;
    }
    boolean block = c == '@' && types.startsWith("@?", start);
    return start + (block ? 2 : 1);
  }

  private static char shapeOf(String type) {
    return switch (type.charAt(0)) {
      case 'v' -> 'V';
      case '@', '#', ':', '*', '^', 'q', 'Q' -> 'L';
      case 'B' -> 'Z';
      case 'd' -> 'D';
      case '{' -> shapeOfStruct(type);
      default -> throw new IllegalArgumentException("Type '" + type + "' is not supported");
    };
  }

  private static char shapeOfStruct(String type) {
    String fields = type.substring(type.indexOf('=') + 1, type.length() - 1);
    return switch (fields.toUpperCase(Locale.ROOT)) {
      case "QQQ" -> 'S';
      case "QQ" -> 'R';
      default -> throw new IllegalArgumentException("Struct '" + type + "' is not supported");
    };
  }
}
