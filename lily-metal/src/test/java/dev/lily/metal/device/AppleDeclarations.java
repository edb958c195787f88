package dev.lily.metal.device;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Reads Objective-C declarations into a table of methods and type encodings, by the rules of the
 * language: it knows none of the binding's own strings.
 */
final class AppleDeclarations {
  private static final Pattern TYPE =
      Pattern.compile("@(?:interface|protocol) (\\w+)(.*?)@end", Pattern.DOTALL);
  private static final Pattern ENUM = Pattern.compile("typedef NS_\\w+\\((\\w+), (\\w+)\\);");
  private static final Pattern STRUCT =
      Pattern.compile("typedef struct \\w*\\s*\\{(.*?)\\} (\\w+);");
  private static final Pattern METHOD =
      Pattern.compile("([-+]) \\(((?:[^()]|\\([^()]*\\))*)\\)(.*);");
  private static final Pattern PROPERTY = Pattern.compile("@property \\((.*?)\\) (.*?)(\\w+);");
  private static final Pattern PART =
      Pattern.compile("(\\w+)(?::\\(((?:[^()]|\\([^()]*\\))*)\\)\\s*\\w+)?\\s*");

  private final Map<String, String> encodings = new HashMap<>();
  private final Map<String, String> methods = new TreeMap<>();

  private AppleDeclarations() {}

  /** Methods as {@code Receiver name}, a class method's receiver with a leading +, to encodings. */
  static Map<String, String> read(Path header) throws IOException {
    String text = Files.readString(header);
    AppleDeclarations reader = new AppleDeclarations();
    reader.basicTypes();
    ENUM.matcher(text)
        .results()
        .forEach(m -> reader.encodings.put(m.group(2), reader.encodings.get(m.group(1))));
    STRUCT.matcher(text).results().forEach(m -> reader.struct(m.group(2), m.group(1)));
    TYPE.matcher(text).results().forEach(m -> reader.members(m.group(1), m.group(2)));
    return reader.methods;
  }

  private void basicTypes() {
    encodings.putAll(
        Map.of(
            "void",
            "v",
            "BOOL",
            "B",
            "NSUInteger",
            "Q",
            "NSInteger",
            "q",
            "uint64_t",
            "Q",
            "CFTimeInterval",
            "d",
            "SEL",
            ":",
            "id",
            "@",
            "instancetype",
            "@",
            "ObjectType",
            "@"));
    encodings.put("NSErrorDomain", "@");
  }

  private void struct(String name, String fields) {
    StringBuilder encoding = new StringBuilder("{" + name + "=");
    for (String declaration : fields.split(";")) {
      if (!declaration.isBlank()) {
        String type = declaration.strip().split("\\s+")[0];
        encoding.repeat(encodings.get(type), declaration.split(",").length);
      }
    }
    encodings.put(name, encoding.append('}').toString());
  }

  private void members(String receiver, String body) {
    for (String line : body.split("\n")) {
      Matcher method = METHOD.matcher(line);
      Matcher property = PROPERTY.matcher(line);
      if (method.matches()) {
        method(receiver, method.group(1), method.group(2), method.group(3));
      } else if (property.matches()) {
        property(receiver, property.group(1), property.group(2).strip(), property.group(3));
      } else if (!line.isBlank()) {
        throw new AssertionError("Not understood: " + line);
      }
    }
  }

  private void method(String receiver, String kind, String result, String rest) {
    StringBuilder name = new StringBuilder();
    StringBuilder types = new StringBuilder(encode(result));
    Matcher part = PART.matcher(rest);
    while (part.find()) {
      name.append(part.group(1));
      if (part.group(2) != null) {
        name.append(':');
        types.append(encode(part.group(2)));
      }
    }
    methods.put((kind.equals("+") ? "+" : "") + receiver + " " + name, types.toString());
  }

  private void property(String receiver, String attributes, String type, String name) {
    String owner = (attributes.contains("class") ? "+" : "") + receiver;
    methods.put(owner + " " + name, encode(type));
    if (!attributes.contains("readonly")) {
      String setter = "set" + Character.toUpperCase(name.charAt(0)) + name.substring(1) + ":";
      methods.put(owner + " " + setter, "v" + encode(type));
    }
  }

  private String encode(String declared) {
    String type = declared.replace("const ", "").strip();
    if (type.contains("(^)")) {
      return "@?";
    }
    if (type.endsWith("[]")) {
      return "^" + encode(type.substring(0, type.length() - 2));
    }
    if (type.endsWith("**")) {
      return "^@";
    }
    if (type.endsWith("*")) {
      return switch (type.substring(0, type.length() - 1).strip()) {
        case "void" -> "^v";
        case "char" -> "*";
        default -> "@";
      };
    }
    String encoding = encodings.get(type.startsWith("id<") ? "id" : type);
    if (encoding == null) {
      throw new AssertionError("Unknown type: " + declared);
    }
    return encoding;
  }
}
