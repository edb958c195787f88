package dev.lily.metal.kernel;

import dev.lily.engine.backend.BackendException;
import dev.lily.metal.device.ComputePipeline;
import dev.lily.metal.device.GpuFamily;
import dev.lily.metal.device.LanguageVersion;
import dev.lily.metal.device.MathMode;
import dev.lily.metal.device.MetalDevice;
import dev.lily.metal.device.MetalLibrary;
import dev.lily.metal.device.ShaderCompilationException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Stream;
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
  private static final Map<String, List<String>> TENSOR_FAMILIES =
      Map.of(
          "matmul_tensor", MatmulRoute.TENSOR_NAMES,
          "attention_tensor", AttentionRoute.TENSOR_NAMES,
          "experts_tensor", ExpertsRoute.TENSOR_NAMES);

  private final Map<String, ComputePipeline> pipelines = new ConcurrentHashMap<>();

  /** Why tensor operations are not used; empty if they are. */
  private Optional<String> tensorRefusal = Optional.empty();

  private KernelLibrary() {}

  /**
   * Compiles everything. Tensor operations are left out where the setting or the compiler is
   * against them, which the log says.
   *
   * @throws dev.lily.metal.device.ShaderCompilationException if the compiler refuses another kernel
   */
  public static KernelLibrary compile(MetalDevice device, TensorOperations setting) {
    long start = System.nanoTime();
    KernelLibrary library = new KernelLibrary();
    library.compile(device, FAMILIES, source("common"), LanguageVersion.MSL_3_1);
    library.tensorRefusal = setting.refusal(device.supports(GpuFamily.APPLE10));
    if (library.hasTensorOperations()) {
      library.compileTensorOperations(device);
    }
    log.info(
        "Compiled {} Metal kernels in {} ms; prefill multiplies by {}",
        library.pipelines.size(),
        (System.nanoTime() - start) / 1_000_000,
        library.tensorRefusal.map(why -> "simdgroup_matrix: " + why).orElse("tensor operations"));
    return library;
  }

  /** All or none: what compiled before a refusal is left unused until the device closes. */
  private void compileTensorOperations(MetalDevice device) {
    try {
      String common = source("common") + source("common_tensor");
      compile(device, TENSOR_FAMILIES, common, LanguageVersion.MSL_4_0);
    } catch (ShaderCompilationException e) {
      log.warn("Tensor operations do not compile on this system and are not used", e);
      tensorRefusal = Optional.of("tensor operations do not compile on this system");
    }
  }

  /** Whether prefill's products of 4-bit and 8-bit matrices go through tensor operations. */
  public boolean hasTensorOperations() {
    return tensorRefusal.isEmpty();
  }

  private void compile(
      MetalDevice device,
      Map<String, List<String>> families,
      String common,
      LanguageVersion version) {
    int threads = Math.min(families.size(), Runtime.getRuntime().availableProcessors());
    try (ExecutorService compilers =
        Executors.newFixedThreadPool(
            threads, Thread.ofPlatform().daemon().name("lily-metal-compiler-", 0).factory())) {
      List<Future<?>> compiled = new ArrayList<>();
      families.forEach(
          (family, names) ->
              compiled.add(
                  compilers.submit(
                      () -> compile(device, family, names, common + source(family), version))));
      for (Future<?> family : compiled) {
        join(family);
      }
    }
  }

  private void compile(
      MetalDevice device,
      String family,
      List<String> names,
      String source,
      LanguageVersion version) {
    try (MetalLibrary library = device.compile(family + ".metal", source, version, MathMode.SAFE)) {
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

  /** As {@link #families}, of the sources for tensor operations, which need MSL 4.0. */
  static Map<String, List<String>> tensorFamilies() {
    return TENSOR_FAMILIES;
  }

  /** Names of all kernels that the encoders may use. */
  static List<String> names() {
    return Stream.of(FAMILIES, TENSOR_FAMILIES)
        .flatMap(families -> families.values().stream())
        .flatMap(List::stream)
        .toList();
  }
}
