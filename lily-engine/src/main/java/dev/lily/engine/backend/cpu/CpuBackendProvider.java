package dev.lily.engine.backend.cpu;

import com.sun.management.OperatingSystemMXBean;
import dev.lily.engine.backend.Availability;
import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.BackendProvider;
import dev.lily.engine.backend.DeviceInfo;
import dev.lily.engine.backend.cpu.kernel.CpuKernels;
import dev.lily.engine.backend.cpu.scalar.ScalarKernels;
import dev.lily.engine.backend.cpu.vector.VectorKernels;
import java.lang.management.ManagementFactory;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The CPU back end: runs everywhere, chosen when nothing faster is available. */
public final class CpuBackendProvider implements BackendProvider {
  static final String ID = "cpu";

  private static final Logger log = LoggerFactory.getLogger(CpuBackendProvider.class);
  private static final String VECTOR_MODULE = "jdk.incubator.vector";
  private static final String VECTOR_FLAG = "--add-modules=" + VECTOR_MODULE;

  @Override
  public String id() {
    return ID;
  }

  @Override
  public int priority() {
    return 0;
  }

  @Override
  public Availability availability() {
    return new Availability.Available(name());
  }

  private static String name() {
    return System.getProperty("os.arch") + " CPU";
  }

  @Override
  public Backend open(BackendOptions options) {
    int threads =
        options.threads() > 0 ? options.threads() : Runtime.getRuntime().availableProcessors();
    CpuKernels kernels = kernels(options.kernels());
    String detail = "%s, %d thread%s".formatted(kernels.detail(), threads, threads == 1 ? "" : "s");
    return new CpuBackend(kernels, threads, new DeviceInfo(name(), detail, memoryBudgetBytes()));
  }

  private static CpuKernels kernels(String family) {
    boolean vector = ModuleLayer.boot().findModule(VECTOR_MODULE).isPresent();
    return switch (family) {
      case "scalar" -> ScalarKernels.create();
      case "vector" -> {
        if (!vector) {
          throw new BackendException(
              "The vector kernels need the module %s; start Java with %s, or choose scalar kernels"
                  .formatted(VECTOR_MODULE, VECTOR_FLAG));
        }
        yield VectorKernels.create();
      }
      case "auto" -> {
        if (vector) {
          yield VectorKernels.create();
        }
        log.warn(
            "The module {} is missing, so the slow scalar kernels run; start Java with {}",
            VECTOR_MODULE,
            VECTOR_FLAG);
        yield ScalarKernels.create();
      }
      default ->
          throw new BackendException(
              "kernels is '%s'; it must be auto, vector or scalar".formatted(family));
    };
  }

  /**
   * Memory of the machine or container less the largest Java heap. Weights, pages and slots lie
   * outside the heap; activations and scratch, which lie inside, are small beside them.
   */
  private static long memoryBudgetBytes() {
    if (ManagementFactory.getOperatingSystemMXBean() instanceof OperatingSystemMXBean system) {
      return Math.max(0, system.getTotalMemorySize() - Runtime.getRuntime().maxMemory());
    }
    return Long.MAX_VALUE;
  }
}
