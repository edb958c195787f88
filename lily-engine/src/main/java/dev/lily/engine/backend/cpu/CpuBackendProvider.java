package dev.lily.engine.backend.cpu;

import com.sun.management.OperatingSystemMXBean;
import dev.lily.engine.backend.Availability;
import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.BackendProvider;
import dev.lily.engine.backend.DeviceInfo;
import dev.lily.engine.backend.cpu.kernel.CpuKernels;
import java.lang.management.ManagementFactory;

/** The CPU back end: runs everywhere, chosen when nothing faster is available. */
public final class CpuBackendProvider implements BackendProvider {
  static final String ID = "cpu";

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
    return open(options, false);
  }

  /**
   * @param isPoisoned for tests: whether pages and slots start as NaN
   */
  static Backend open(BackendOptions options, boolean isPoisoned) {
    int threads =
        options.threads() > 0 ? options.threads() : Runtime.getRuntime().availableProcessors();
    CpuKernels kernels = KernelChoice.ofThisJvm().kernels(options.kernels());
    WeightPlacement placement = WeightPlacement.of(options.weights(), kernels);
    String detail = "%s, %d thread%s".formatted(kernels.detail(), threads, threads == 1 ? "" : "s");
    return new CpuBackend(
        kernels,
        threads,
        placement,
        new DeviceInfo(name(), detail, memoryBudgetBytes()),
        isPoisoned);
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
