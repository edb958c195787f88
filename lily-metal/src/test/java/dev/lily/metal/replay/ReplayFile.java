package dev.lily.metal.replay;

import dev.lily.metal.msl.KernelSignatures;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;

/**
 * A trace with all that the replay program needs: the types of the kernels' buffers before it, as
 * {@code kernel NAME buffer:type:r|w ...}, and after the word {@code dispatch} its bytes of
 * weights, states, cache and other, and its floating-point operations.
 */
public final class ReplayFile {
  private ReplayFile() {}

  public static void write(
      Trace trace, Map<String, List<KernelSignatures.Buffer>> signatures, Path file) {
    List<String> lines = new ArrayList<>();
    Map<String, String> kernels = new TreeMap<>();
    for (Trace.Dispatch dispatch : trace.dispatches()) {
      kernels.computeIfAbsent(dispatch.kernel(), name -> kernel(name, signatures.get(name)));
    }
    lines.addAll(kernels.values());
    Iterator<Trace.Dispatch> dispatches = trace.dispatches().iterator();
    for (String line : trace.lines()) {
      if (line.startsWith("dispatch ")) {
        Traffic t = Traffic.of(trace, dispatches.next());
        lines.add(
            "dispatch %d %d %d %d %d %s"
                .formatted(
                    t.weights(),
                    t.states(),
                    t.cache(),
                    t.other(),
                    t.flops(),
                    line.substring("dispatch ".length())));
      } else {
        lines.add(line);
      }
    }
    try {
      Files.createDirectories(Objects.requireNonNull(file.getParent()));
      Files.write(file, lines);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static String kernel(String name, List<KernelSignatures.Buffer> buffers) {
    StringBuilder line = new StringBuilder("kernel ").append(name);
    for (KernelSignatures.Buffer buffer : buffers) {
      line.append(' ')
          .append(buffer.name())
          .append(':')
          .append(type(buffer.element()))
          .append(':')
          .append(buffer.isWritten() ? 'w' : 'r');
    }
    return line.toString();
  }

  private static String type(String element) {
    return switch (element) {
      case "float" -> "f32";
      case "bfloat" -> "bf16";
      case "uint", "int", "uint4" -> "u32";
      case "ulong" -> "u64";
      default -> "struct";
    };
  }
}
