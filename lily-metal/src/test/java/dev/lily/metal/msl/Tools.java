package dev.lily.metal.msl;

import java.util.Optional;
import org.junit.jupiter.api.Assumptions;

/** The toolchain and the built kernels, or a visible skip where clang is missing. */
final class Tools {
  /** Where a missing tool fails the build instead of skipping the tests. */
  private static final String REQUIRED = "LILY_REQUIRE_METAL_TOOLS";

  private static final Optional<MslToolchain> TOOLCHAIN =
      isLinux() ? MslToolchain.find() : Optional.empty();

  private Tools() {}

  private static boolean isLinux() {
    return System.getProperty("os.name").equals("Linux");
  }

  static MslToolchain toolchain() {
    if (TOOLCHAIN.isEmpty()) {
      String reason = "this is not Linux with clang 19 or newer; the Metal kernels are not checked";
      if (Boolean.parseBoolean(System.getenv(REQUIRED))) {
        throw new AssertionError(reason + " although " + REQUIRED + " is set");
      }
      Assumptions.abort(reason);
    }
    return TOOLCHAIN.get();
  }

  static CpuKernels kernels() {
    if (KernelLibraries.given().isEmpty()) {
      toolchain();
    }
    return Built.KERNELS;
  }

  private static final class Built {
    static final CpuKernels KERNELS =
        CpuKernels.load(KernelLibraries.given().orElseGet(() -> toolchain().buildLibrary()));
  }
}
