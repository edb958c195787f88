package dev.lily.engine.model.qwen35moe;

import java.util.stream.Stream;

/** Kernel paths that this JVM can run: the vector one needs the incubator module. */
final class KernelPaths {
  private KernelPaths() {}

  static Stream<String> available() {
    if (ModuleLayer.boot().findModule("jdk.incubator.vector").isPresent()) {
      return Stream.of("scalar", "vector");
    }
    System.out.println(
        "jdk.incubator.vector is not in this JVM: the vector kernels are not tested");
    return Stream.of("scalar");
  }
}
