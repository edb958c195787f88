package dev.lily.engine.backend.cpu;

import java.util.stream.Stream;

/** Kernel paths that this JVM can run: the vector one needs the incubator module. */
public final class KernelPaths {
  private KernelPaths() {}

  /** Whether the vector kernels can run. */
  public static boolean hasVector() {
    return ModuleLayer.boot().findModule("jdk.incubator.vector").isPresent();
  }

  /** Their names in configuration; says so if one is missing. */
  public static Stream<String> available() {
    if (hasVector()) {
      return Stream.of("scalar", "vector");
    }
    System.out.println(
        "jdk.incubator.vector is not in this JVM: the vector kernels are not tested");
    return Stream.of("scalar");
  }
}
