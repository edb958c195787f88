package dev.lily.metal.msl;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Turns preprocessed Metal source into C++ for {@code metal_language.h}, and refuses what C++ would
 * accept but Metal does not. Works on the output of {@code clang -E}, so that kernels made by
 * macros are seen and line numbers survive.
 */
final class MslTranslator {
  private static final Pattern KERNEL =
      Pattern.compile(
          "(?:\\[\\[\\s*max_total_threads_per_threadgroup\\s*\\(\\s*(\\d+)\\s*\\)\\s*\\]\\]\\s*)?"
              + "\\bkernel\\s+void\\s+(\\w+)\\s*\\(");
  private static final Pattern ATTRIBUTE =
      Pattern.compile("\\[\\[\\s*(\\w+)\\s*(?:\\(\\s*(\\d+)\\s*\\))?\\s*\\]\\]");
  private static final Pattern NAME = Pattern.compile("(\\w+)\\s*$");
  private static final Pattern SPACE =
      Pattern.compile("\\b(device|constant|threadgroup|thread)\\b");
  private static final Pattern FUNCTION =
      Pattern.compile("(\\w+)\\s*\\(([^;{}]*)\\)\\s*(?:const\\s*)?\\{");
  private static final Pattern PROGRAM_CONSTANT =
      Pattern.compile("\\bconstant\\s+(?:constexpr\\s+)?([\\w:]+)\\s+(\\w+)\\s*(\\[|=)");
  private static final Pattern THREADGROUP_VARIABLE =
      Pattern.compile(
          "\\bthreadgroup\\s+(?!const\\b)([\\w:]+(?:<[^;<>]*>)?)\\s+"
              + "((?:\\w+(?:\\s*\\[[^\\];]*\\])*\\s*,?\\s*)+);");
  private static final Pattern INITIALISED_THREADGROUP_VARIABLE =
      Pattern.compile("\\bthreadgroup\\s+[\\w:]+\\s+(\\w+)\\s*(?:\\[[^\\]]*\\]\\s*)*=");
  private static final Set<String> STATEMENTS = Set.of("if", "for", "while", "switch", "return");
  private static final int MAX_BUFFER_INDEX = 30;

  /**
   * @param type as written, without attribute and name
   * @param attribute name inside the double brackets
   * @param index the attribute's argument, or -1
   */
  record Parameter(String type, String name, String attribute, int index) {
    boolean isBuffer() {
      return attribute.equals("buffer");
    }

    boolean isConstant() {
      return Pattern.compile("\\bconstant\\b").matcher(type).find();
    }

    boolean isReference() {
      return type.contains("&");
    }

    boolean isReadOnly() {
      return isConstant() || Pattern.compile("\\bconst\\b").matcher(type).find();
    }

    /** Type of an element, address space and const aside. */
    String element() {
      return type.replaceAll("\\b(device|constant|const|volatile)\\b|[*&]", " ").strip();
    }
  }

  /**
   * @param maxThreads most threads of a threadgroup
   */
  record Kernel(String name, int maxThreads, List<Parameter> parameters) {
    List<Parameter> buffers() {
      return parameters.stream().filter(Parameter::isBuffer).toList();
    }
  }

  private final String source;
  private final boolean tensors;
  private final List<Kernel> kernels;

  /**
   * @param tensors whether the source has Metal 4's tensor operations
   */
  MslTranslator(String preprocessed, boolean tensors) {
    source = preprocessed;
    this.tensors = tensors;
    kernels = findKernels(preprocessed);
  }

  List<Kernel> kernels() {
    return kernels;
  }

  private static List<Kernel> findKernels(String source) {
    List<Kernel> found = new ArrayList<>();
    Matcher kernel = KERNEL.matcher(source);
    while (kernel.find()) {
      int end = closing(source, kernel.end() - 1);
      List<Parameter> parameters = new ArrayList<>();
      for (String text : split(source.substring(kernel.end(), end))) {
        parameters.add(parameter(text));
      }
      int maxThreads = kernel.group(1) == null ? 1024 : Integer.parseInt(kernel.group(1));
      found.add(new Kernel(kernel.group(2), maxThreads, parameters));
    }
    return found;
  }

  private static Parameter parameter(String text) {
    String line = text.replaceAll("(?m)^#.*$", " ").replaceAll("\\s+", " ").strip();
    Matcher attribute = ATTRIBUTE.matcher(line);
    String attributeName = "";
    int index = -1;
    if (attribute.find()) {
      attributeName = attribute.group(1);
      index = attribute.group(2) == null ? -1 : Integer.parseInt(attribute.group(2));
    }
    String declaration = ATTRIBUTE.matcher(line).replaceAll("").strip();
    Matcher name = NAME.matcher(declaration);
    if (!name.find()) {
      throw new IllegalArgumentException("A kernel's parameter has no name: " + line);
    }
    return new Parameter(
        declaration.substring(0, name.start()).strip(), name.group(1), attributeName, index);
  }

  /** Violations of rules that a C++ front end cannot see, one sentence each. */
  List<String> violations() {
    List<String> errors = new ArrayList<>();
    kernels.forEach(kernel -> checkParameters(kernel, errors));
    Matcher function = FUNCTION.matcher(source);
    while (function.find()) {
      if (STATEMENTS.contains(function.group(1)) || depth(source, function.start()) != 0) {
        continue;
      }
      for (String parameter : split(function.group(2))) {
        if (parameter.matches("(?s).*[*&].*") && !SPACE.matcher(parameter).find()) {
          errors.add(
              "function %s: parameter '%s' is a pointer or reference without an address space"
                  .formatted(function.group(1), parameter.strip()));
        }
      }
    }
    Matcher initialised = INITIALISED_THREADGROUP_VARIABLE.matcher(source);
    while (initialised.find()) {
      errors.add("threadgroup variable " + initialised.group(1) + " has an initialiser");
    }
    if (Pattern.compile("\\bdouble\\b").matcher(source).find()) {
      errors.add("Metal has no double");
    }
    return errors;
  }

  private static void checkParameters(Kernel kernel, List<String> errors) {
    Set<Integer> indices = new HashSet<>();
    for (Parameter parameter : kernel.parameters()) {
      String at = "kernel %s, parameter %s: ".formatted(kernel.name(), parameter.name());
      if (parameter.attribute().isEmpty()) {
        errors.add(at + "it has no attribute");
      }
      if (!parameter.isBuffer()) {
        continue;
      }
      if (!Pattern.compile("\\b(device|constant)\\b").matcher(parameter.type()).find()) {
        errors.add(at + "a buffer is in device or constant memory");
      }
      if (!indices.add(parameter.index())) {
        errors.add(at + "buffer index " + parameter.index() + " is used twice");
      }
      if (parameter.index() > MAX_BUFFER_INDEX) {
        errors.add(at + "buffer index " + parameter.index() + " is above " + MAX_BUFFER_INDEX);
      }
    }
    for (int i = 0; i < indices.size(); i++) {
      if (!indices.contains(i)) {
        errors.add("kernel %s: buffer index %d is left out".formatted(kernel.name(), i));
      }
    }
  }

  /** C++ that only has to compile. */
  String toCheck() {
    return prologue("user") + "}\n" + kernelChecks();
  }

  /** C++ that registers each kernel with the runtime. */
  String toRun() {
    StringBuilder out = new StringBuilder(prologue("user")).append("}\n").append(kernelChecks());
    for (Kernel kernel : kernels) {
      appendLauncher(out, kernel);
      appendRegistration(out, kernel, kernel.name() + "__run");
    }
    return out.toString();
  }

  /** C++ that registers each kernel, for a runtime that has the kernels themselves elsewhere. */
  String toTable() {
    StringBuilder out = new StringBuilder(prologue("user")).append("}\n");
    for (Kernel kernel : kernels) {
      appendRegistration(out, kernel, "nullptr");
    }
    return out.toString();
  }

  /** The source as C++ of one namespace inside {@code metal}, which stays open. */
  String prologue(String namespace) {
    String body = programConstants(source);
    body = threadgroupVariables(body);
    body = ATTRIBUTE.matcher(body).replaceAll("");
    body = body.replaceAll("\\bkernel\\s+void\\b", "static inline void");
    return "#include \"metal_language.h\"\n"
        + (tensors ? "#include \"metal_tensor_operations.h\"\n" : "")
        + "namespace metal::"
        + namespace
        + " {\nusing namespace metal;\n"
        + body
        + "\n";
  }

  private String kernelChecks() {
    StringBuilder out = new StringBuilder();
    for (Kernel kernel : kernels) {
      out.append("static_assert(metal::shim::is_kernel(&metal::user::")
          .append(kernel.name())
          .append("), \"kernel pointer without an address space\");\n");
    }
    return out.toString();
  }

  /** Program-scope constants are ordinary constants here. */
  private static String programConstants(String source) {
    StringBuilder out = new StringBuilder();
    Matcher constant = PROGRAM_CONSTANT.matcher(source);
    int from = 0;
    while (constant.find()) {
      if (depth(source, constant.start()) != 0) {
        continue;
      }
      String kind = constant.group(3).equals("[") ? "static constant " : "static constexpr ";
      out.append(source, from, constant.start())
          .append(kind)
          .append(constant.group(1))
          .append(' ')
          .append(constant.group(2))
          .append(' ')
          .append(constant.group(3));
      from = constant.end();
    }
    return out.append(source.substring(from)).toString();
  }

  /** {@code threadgroup T a[N], b;} becomes a reference into the threadgroup's memory for each. */
  private static String threadgroupVariables(String source) {
    int[] next = {0};
    return THREADGROUP_VARIABLE
        .matcher(source)
        .replaceAll(match -> Matcher.quoteReplacement(variables(match, next)));
  }

  private static String variables(MatchResult match, int[] next) {
    StringBuilder out = new StringBuilder();
    for (String declarator : split(match.group(2))) {
      String text = declarator.strip();
      String name = text.split("[\\s\\[]", 2)[0];
      String dimensions = text.substring(name.length());
      out.append(
          "typedef %s %s__t%s; LILY_THREADGROUP_VARIABLE(%d, %s__t, %s);"
              .formatted(match.group(1), name, dimensions, next[0]++, name, name));
    }
    return out.toString();
  }

  private static void appendLauncher(StringBuilder out, Kernel kernel) {
    out.append("namespace metal::user {\nstatic void ")
        .append(kernel.name())
        .append("__run(void* const* b) {\n  ")
        .append(kernel.name())
        .append("(");
    List<String> arguments = new ArrayList<>();
    for (Parameter parameter : kernel.parameters()) {
      arguments.add(argument(parameter));
    }
    out.append(String.join(", ", arguments)).append(");\n}\n}\n");
  }

  private static void appendRegistration(StringBuilder out, Kernel kernel, String run) {
    boolean usesBlock =
        kernel.parameters().stream().anyMatch(p -> p.attribute().equals("threadgroup"));
    out.append("#ifndef LILY_RUNTIME\n#define LILY_RUNTIME\n#include \"runtime.h\"\n#endif\n");
    out.append("namespace metal::user {\n");
    List<Parameter> buffers =
        kernel.buffers().stream().sorted((a, b) -> Integer.compare(a.index(), b.index())).toList();
    out.append("static const lily_buffer_info ").append(kernel.name()).append("__buffers[] = {\n");
    for (Parameter buffer : buffers) {
      String element = buffer.element();
      out.append(
          "  {\"%s\", sizeof(%s), alignof(%s), %s, %s},\n"
              .formatted(
                  buffer.name(),
                  element,
                  element,
                  buffer.isReadOnly() ? "LILY_READ" : "LILY_READ | LILY_WRITE",
                  buffer.isConstant() ? "LILY_CONSTANT" : "LILY_DEVICE"));
    }
    out.append(
        "};\nstatic lily::Registration %s__registration = {{\"%s\", %d, %d, 0, %d, %s__buffers}, %s, nullptr};\n"
            .formatted(
                kernel.name(),
                kernel.name(),
                buffers.size(),
                usesBlock ? 1 : 0,
                kernel.maxThreads(),
                kernel.name(),
                run));
    out.append(
        "__attribute__((constructor)) static void %s__add() { lily::add(&%s__registration); }\n}\n"
            .formatted(kernel.name(), kernel.name()));
  }

  private static String argument(Parameter parameter) {
    if (parameter.isBuffer()) {
      String pointer = parameter.type().replace("&", "*");
      String cast = "(%s)(size_t)b[%d]".formatted(pointer, parameter.index());
      return parameter.isReference() ? "*" + cast : cast;
    }
    if (parameter.attribute().equals("threadgroup")) {
      return "(%s)(size_t)shim::threadgroup_block(%d)"
          .formatted(parameter.type(), parameter.index());
    }
    return "shim::input<%s>(shim::%s())".formatted(parameter.type(), parameter.attribute());
  }

  private static int depth(String text, int end) {
    int depth = 0;
    for (int i = 0; i < end; i++) {
      switch (text.charAt(i)) {
        case '"' -> i = text.indexOf('"', i + 1);
        case '{', '(' -> depth++;
        case '}', ')' -> depth--;
        default -> {}
      }
    }
    return depth;
  }

  private static int closing(String text, int open) {
    int depth = 0;
    for (int i = open; i < text.length(); i++) {
      char c = text.charAt(i);
      if (c == '(') {
        depth++;
      } else if (c == ')' && --depth == 0) {
        return i;
      }
    }
    throw new IllegalArgumentException("A parenthesis is not closed");
  }

  /** At commas outside of brackets. */
  private static List<String> split(String text) {
    List<String> parts = new ArrayList<>();
    int depth = 0;
    int from = 0;
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if ("([<".indexOf(c) >= 0) {
        depth++;
      } else if (")]>".indexOf(c) >= 0) {
        depth--;
      } else if (c == ',' && depth == 0) {
        parts.add(text.substring(from, i));
        from = i + 1;
      }
    }
    if (!text.substring(from).isBlank()) {
      parts.add(text.substring(from));
    }
    return parts;
  }
}
