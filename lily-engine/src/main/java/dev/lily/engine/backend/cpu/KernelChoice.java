package dev.lily.engine.backend.cpu;

import com.sun.management.HotSpotDiagnosticMXBean;
import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.cpu.kernel.CpuKernels;
import dev.lily.engine.backend.cpu.scalar.ScalarKernels;
import dev.lily.engine.backend.cpu.vector.VectorKernels;
import java.lang.management.ManagementFactory;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Chooses a kernel family.
 *
 * @param vectorModule whether {@code jdk.incubator.vector} is there
 * @param optimizingCompiler whether the JVM compiles with its optimizing compiler, without which
 *     every vector is an object
 */
record KernelChoice(boolean vectorModule, boolean optimizingCompiler) {
  private static final Logger log = LoggerFactory.getLogger(KernelChoice.class);
  private static final String VECTOR_MODULE = "jdk.incubator.vector";
  private static final String VECTOR_FLAG = "--add-modules=" + VECTOR_MODULE;
  private static final String TIER_OPTION = "TieredStopAtLevel";
  private static final int OPTIMIZING_TIER = 4;

  /** What this JVM was started with. */
  static KernelChoice ofThisJvm() {
    return new KernelChoice(
        ModuleLayer.boot().findModule(VECTOR_MODULE).isPresent(), hasOptimizingCompiler());
  }

  private static boolean hasOptimizingCompiler() {
    HotSpotDiagnosticMXBean options =
        ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class);
    if (options == null) {
      return true;
    }
    try {
      return Integer.parseInt(options.getVMOption(TIER_OPTION).getValue()) >= OPTIMIZING_TIER;
    } catch (IllegalArgumentException e) {
      // A JVM without that option compiles in its own way.
      return true;
    }
  }

  /**
   * The family that an option asks for.
   *
   * @param word {@code auto}, {@code vector} or {@code scalar}
   * @throws BackendException for another word, and for {@code vector} without the module
   */
  CpuKernels kernels(String word) {
    return switch (word) {
      case "auto" -> automatic();
      case "vector" -> {
        if (!vectorModule) {
          throw new BackendException(
              "Vector kernels need the module %s; start Java with %s, or choose scalar kernels"
                  .formatted(VECTOR_MODULE, VECTOR_FLAG));
        }
        yield VectorKernels.create();
      }
      case "scalar" -> ScalarKernels.create();
      default ->
          throw new BackendException(
              "kernels is '%s'; it must be auto, vector or scalar".formatted(word));
    };
  }

  private CpuKernels automatic() {
    if (!vectorModule) {
      log.warn(
          "Running the slow scalar kernels, because the module {} is missing; start Java with {}",
          VECTOR_MODULE,
          VECTOR_FLAG);
      return ScalarKernels.create();
    }
    if (!optimizingCompiler) {
      log.warn(
          "Running the slow scalar kernels, because -XX:{} turns the optimizing compiler off;"
              + " start Java without it",
          TIER_OPTION);
      return ScalarKernels.create();
    }
    if (!VectorKernels.isSupported()) {
      log.warn("Running the slow scalar kernels, because this JVM has no vectors of 128 bits");
      return ScalarKernels.create();
    }
    return VectorKernels.create();
  }
}
