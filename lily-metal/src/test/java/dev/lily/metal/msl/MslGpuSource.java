package dev.lily.metal.msl;

import dev.lily.metal.msl.MslTranslator.Kernel;
import dev.lily.metal.msl.MslTranslator.Parameter;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * All kernel sources as one translation unit for an NVIDIA GPU: an entry per kernel, under its own
 * name, with a pointer per buffer.
 */
final class MslGpuSource {
  private static final Pattern ENTRY = Pattern.compile("\\.visible \\.entry (\\w+)\\([^)]*\\)");

  private final List<Kernel> kernels = new ArrayList<>();
  private final StringBuilder text =
      new StringBuilder(
          "#pragma clang attribute push(__attribute__((always_inline)), apply_to = function)\n");

  void add(String family, MslTranslator source) {
    text.append(source.prologue(family)).append("namespace entries {\n");
    source.kernels().forEach(kernel -> appendEntry(family, kernel));
    text.append("}\n}\n");
    kernels.addAll(source.kernels());
  }

  String text() {
    return text + "#pragma clang attribute pop\n";
  }

  private void appendEntry(String family, Kernel kernel) {
    List<String> parameters =
        kernel.buffers().stream()
            .sorted(Comparator.comparingInt(Parameter::index))
            .map(b -> (b.isConstant() ? "device const char*" : b.type()) + " " + b.name())
            .toList();
    List<String> arguments = kernel.parameters().stream().map(MslGpuSource::argument).toList();
    text.append(
        "extern \"C\" [[clang::nvptx_kernel]] void %s(%s) { metal::%s::%s(%s); }\n"
            .formatted(
                kernel.name(),
                String.join(", ", parameters),
                family,
                kernel.name(),
                String.join(", ", arguments)));
  }

  private static String argument(Parameter parameter) {
    String type = parameter.type();
    if (parameter.isBuffer()) {
      if (!parameter.isConstant()) {
        return parameter.name();
      }
      return parameter.isReference()
          ? "shim::parameters<%s>(%s)".formatted(parameter.element(), parameter.name())
          : "(%s)%s".formatted(type, parameter.name());
    }
    if (parameter.attribute().equals("threadgroup")) {
      return "(%s)shim::lily_threadgroup_block".formatted(type);
    }
    return "shim::input<%s>(shim::%s())".formatted(type, parameter.attribute());
  }

  /**
   * Adds to compiled kernels the most threads of a threadgroup, and how many threadgroups share a
   * multiprocessor: both bound their registers.
   */
  String withThreadLimits(String ptx) {
    return ENTRY
        .matcher(ptx)
        .replaceAll(
            entry ->
                Matcher.quoteReplacement(
                    "%s\n.maxntid %d, 1, 1%s"
                        .formatted(
                            entry.group(),
                            limit(entry.group(1)),
                            residents(entry.group(1), limit(entry.group(1))))));
  }

  /**
   * Decode kernels live by the loads in flight: several threadgroups must fit side by side. Those
   * of attention have many in flight themselves.
   */
  private static String residents(String kernel, int maxThreads) {
    int count =
        kernel.startsWith("attention_decode") ? 2 : maxThreads == 256 ? 4 : 1024 / maxThreads;
    return maxThreads < 256 || count < 2 ? "" : "\n.minnctapersm " + count;
  }

  private int limit(String kernel) {
    return kernels.stream()
        .filter(k -> k.name().equals(kernel))
        .findFirst()
        .orElseThrow(() -> new IllegalArgumentException("No source has the kernel " + kernel))
        .maxThreads();
  }
}
