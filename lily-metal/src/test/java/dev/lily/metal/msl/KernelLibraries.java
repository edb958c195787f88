package dev.lily.metal.msl;

import java.nio.file.Path;
import java.util.Optional;

/** The libraries that tests run kernels from, where they are not built on the spot. */
public final class KernelLibraries {
  /** A library that implements {@code lily_kernel_abi.h}, say on a GPU. */
  private static final String KERNELS = "lily.kernels.library";

  /** A folder with the native libraries of the double of Metal. */
  private static final String NATIVE = "lily.native.dir";

  private KernelLibraries() {}

  /** A built kernel library, if one was named. */
  public static Optional<Path> given() {
    return Optional.ofNullable(System.getProperty(KERNELS)).map(Path::of);
  }

  /** A built library of the double, if a folder of them was named. */
  public static Optional<Path> given(String name) {
    return Optional.ofNullable(System.getProperty(NATIVE)).map(folder -> Path.of(folder, name));
  }
}
