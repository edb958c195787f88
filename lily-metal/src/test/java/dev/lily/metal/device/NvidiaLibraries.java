package dev.lily.metal.device;

import dev.lily.metal.msl.MslToolchain;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;

/** Collects the native code that {@code nvidia-proof.sh} takes to a machine with an NVIDIA GPU. */
final class NvidiaLibraries {
  private NvidiaLibraries() {}

  /** Argument: the folder to fill. */
  public static void main(String[] arguments) throws IOException {
    Path folder = Files.createDirectories(Path.of(arguments[0]));
    MslToolchain toolchain =
        MslToolchain.find()
            .orElseThrow(() -> new IllegalStateException("clang 19 or newer is not installed"));
    MetalDouble.install().useStubKernels();
    Path built = Path.of("target", "metal-double");
    for (Path file :
        List.of(
            toolchain.buildPtx(),
            toolchain.buildGpuLibrary(),
            built.resolve("libmetaldouble.so"),
            built.resolve("libstubkernels.so"))) {
      Files.copy(file, folder.resolve(file.getFileName()), StandardCopyOption.REPLACE_EXISTING);
    }
  }
}
