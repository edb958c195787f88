package dev.lily.metal.msl;

import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** What the kernels' sources say about their buffers. */
public final class KernelSignatures {
  /**
   * @param element type of an element, as written
   */
  public record Buffer(String name, String element, boolean isWritten) {}

  private KernelSignatures() {}

  /** The buffers of each kernel by index. */
  public static Map<String, List<Buffer>> read(MslToolchain toolchain) {
    Map<String, List<Buffer>> signatures = new HashMap<>();
    for (String family : MslToolchain.FAMILIES) {
      MslTranslator source = toolchain.preprocess(family, MslToolchain.source(family));
      for (MslTranslator.Kernel kernel : source.kernels()) {
        signatures.put(
            kernel.name(),
            kernel.buffers().stream()
                .sorted(Comparator.comparingInt(MslTranslator.Parameter::index))
                .map(p -> new Buffer(p.name(), p.element(), !p.isReadOnly()))
                .toList());
      }
    }
    return signatures;
  }
}
