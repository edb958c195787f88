package dev.lily.metal.kernel;

import dev.lily.engine.backend.BackendException;
import dev.lily.metal.device.ComputePipeline;
import dev.lily.metal.device.LanguageVersion;
import dev.lily.metal.device.MathMode;
import dev.lily.metal.device.MetalDevice;
import dev.lily.metal.device.MetalLibrary;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * All kernels, compiled for the device. Sources are resources, each with {@code common.metal}
 * before it; families are compiled side by side, once for a device.
 */
public final class KernelLibrary {
  private static final Logger log = LoggerFactory.getLogger(KernelLibrary.class);

  private static final String RESOURCES = "/dev/lily/metal/kernels/";
  private static final Map<String, List<String>> FAMILIES =
      Map.of(
          "norm", NormKernels.NAMES,
          "elementwise", ElementwiseKernels.NAMES,
          "matmul", MatmulRoute.NAMES,
          "attention", AttentionRoute.NAMES,
          "delta_rule", DeltaRuleKernels.NAMES,
          "experts", ExpertsRoute.NAMES,
          "sampling", SamplingKernels.NAMES);

  private final Map<String, ComputePipeline> pipelines = new ConcurrentHashMap<>();

  private KernelLibrary() {}

  /**
   * Compiles everything.
   *
   * @throws dev.lily.metal.device.ShaderCompilationException if the compiler refuses a kernel
   */
  public static KernelLibrary compile(MetalDevice device) {
    long start = System.nanoTime();
    KernelLibrary library = new KernelLibrary();
    String common = source("common");
    int threads = Math.min(FAMILIES.size(), Runtime.getRuntime().availableProcessors());
    try (ExecutorService compilers =
        Executors.newFixedThreadPool(
            threads, Thread.ofPlatform().daemon().name("lily-metal-compiler-", 0).factory())) {
      List<Future<?>> families = new ArrayList<>();
      FAMILIES.forEach(
          (family, names) ->
              families.add(compilers.submit(() -> library.compile(device, common, family, names))));
      for (Future<?> family : families) {
        join(family);
      }
    }
    log.info(
        "Compiled {} Metal kernels in {} ms",
        library.pipelines.size(),
        (System.nanoTime() - start) / 1_000_000);
    return library;
  }

  private void compile(MetalDevice device, String common, String family, List<String> names) {
    String source = common + source(family);
    try (MetalLibrary library =
        device.compile(family + ".metal", source, LanguageVersion.MSL_3_1, MathMode.SAFE)) {
      for (String name : names) {
        pipelines.put(name, library.pipeline(name));
      }
    }
    log.debug("Compiled {} kernels of {}.metal", names.size(), family);
  }

  private static void join(Future<?> family) {
    try {
      family.get();
    } catch (ExecutionException e) {
      switch (e.getCause()) {
        case RuntimeException failure -> throw failure;
        case Error failure -> throw failure;
        case null, default ->
            throw new BackendException("Compiling the Metal kernels failed", e.getCause());
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new BackendException("Compiling the Metal kernels was interrupted", e);
    }
  }

  private static String source(String family) {
    try (InputStream in = KernelLibrary.class.getResourceAsStream(RESOURCES + family + ".metal")) {
      if (in == null) {
        throw new BackendException(
            "Kernel source "
                + family
                + ".metal is not in the jar of lily-metal; is the jar damaged?");
      }
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException("Reading kernel source " + family + ".metal", e);
    }
  }

  /** A kernel by its name in the source. */
  ComputePipeline pipeline(String name) {
    ComputePipeline pipeline = pipelines.get(name);
    if (pipeline == null) {
      throw new IllegalArgumentException("No kernel is called " + name);
    }
    return pipeline;
  }

  /** Names of the kernels of each source, for the check on a real Mac. */
  static Map<String, List<String>> families() {
    return FAMILIES;
  }

  /** Names of all kernels that the encoders use. */
  static List<String> names() {
    return FAMILIES.values().stream().flatMap(List::stream).toList();
  }
}
