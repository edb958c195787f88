package dev.lily.metal.device;

import java.util.Optional;

/**
 * How values of an Objective-C type encoding travel: {@code w} in an integer register, {@code b} as
 * a boolean, {@code d} in a floating-point register, {@code v} not at all, structs by their fields.
 * Encodings that differ only in what a pointer points to have one shape.
 */
final class TypeShape {
  private final String types;
  private int at;

  private TypeShape(String types) {
    this.types = types;
  }

  /** Shape of a method's encoding as the runtime gives it, without receiver and selector. */
  static Optional<String> ofMethod(String encoding) {
    return of(encoding).flatMap(TypeShape::withoutReceiver);
  }

  private static Optional<String> withoutReceiver(String shape) {
    int end = shape.startsWith("{") ? shape.indexOf('}') + 1 : 1;
    return shape.startsWith("ww", end)
        ? Optional.of(shape.substring(0, end) + shape.substring(end + 2))
        : Optional.empty();
  }

  /** Shape of an encoding, or empty if it has a type that is not known here. */
  static Optional<String> of(String encoding) {
    TypeShape reader = new TypeShape(encoding);
    StringBuilder shape = new StringBuilder();
    while (reader.at < encoding.length()) {
      String next = reader.next();
      if (next.isEmpty()) {
        return Optional.empty();
      }
      shape.append(next);
      reader.skipDigits();
    }
    return Optional.of(shape.toString());
  }

  private void skipDigits() {
    while (at < types.length()
        && (Character.isDigit(types.charAt(at)) || types.charAt(at) == '-')) {
      at++;
    }
  }

  private String next() {
    while (at < types.length() && "rnNoORVA".indexOf(types.charAt(at)) >= 0) {
      at++;
    }
    if (at == types.length()) {
      return "";
    }
    char c = types.charAt(at++);
    return switch (c) {
      case '@' -> object();
      case '#', ':', '*', 'q', 'Q', 'l', 'L' -> "w";
      case 'B', 'c', 'C' -> "b";
      case 'd', 'v' -> String.valueOf(c);
      case '^' -> pointer();
      case '{' -> struct();
      default -> "";
    };
  }

  /** An object, a block ({@code @?}), or either with its class or signature in full. */
  private String object() {
    if (at < types.length() && types.charAt(at) == '?') {
      at++;
      if (at < types.length() && types.charAt(at) == '<') {
        skipTo('<', '>');
      }
    } else if (at < types.length() && types.charAt(at) == '"') {
      at = types.indexOf('"', at + 1) + 1;
    }
    return "w";
  }

  private String pointer() {
    if (at < types.length() && types.charAt(at) == '{') {
      skipTo('{', '}');
    } else if (at < types.length() && types.charAt(at) == '?') {
      at++; // of a function
    } else {
      next();
    }
    return "w";
  }

  private void skipTo(char open, char close) {
    int depth = 0;
    do {
      char c = types.charAt(at++);
      depth += c == open ? 1 : c == close ? -1 : 0;
    } while (depth > 0 && at < types.length());
  }

  private String struct() {
    int equals = types.indexOf('=', at);
    if (equals < 0) {
      return "";
    }
    at = equals + 1;
    StringBuilder fields = new StringBuilder("{");
    while (at < types.length() && types.charAt(at) != '}') {
      if (types.charAt(at) == '"') {
        at = types.indexOf('"', at + 1) + 1; // a field's name
      }
      String field = next();
      if (field.isEmpty()) {
        return "";
      }
      fields.append(field);
      skipDigits();
    }
    at++;
    return fields.append('}').toString();
  }
}
