package dev.lily.metal.kernel;

import dev.lily.metal.device.ComputePipeline;
import dev.lily.metal.device.LanguageVersion;
import dev.lily.metal.device.MathMode;
import dev.lily.metal.device.MetalDevice;
import dev.lily.metal.device.MetalLibrary;
import dev.lily.metal.device.ShaderCompilationException;
import dev.lily.metal.msl.MslToolchain;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Compiles every source and every kernel one by one, for numbers that the back end's start hides.
 */
public final class KernelCheck {
  private KernelCheck() {}

  /**
   * A source that was compiled.
   *
   * @param problem the compiler's output; empty if it took the source
   */
  public record Source(String name, long micros, String problem) {}

  /**
   * A kernel that was compiled for the device.
   *
   * @param problem empty if there is none
   */
  public record Kernel(
      String name, long maxThreads, long threadgroupBytes, long micros, String problem) {}

  /** Compiles every source that is written for a version of the language or an older one. */
  public static List<Source> sources(MetalDevice device, LanguageVersion version) {
    List<Source> sources = new ArrayList<>();
    for (String family : families(version).keySet()) {
      long start = System.nanoTime();
      String problem = "";
      try {
        compile(device, family, version).close();
      } catch (ShaderCompilationException e) {
        problem = String.valueOf(e.getMessage());
      }
      sources.add(new Source(family + ".metal", micros(start), problem));
    }
    return sources;
  }

  /**
   * Compiles every kernel that the back end may use.
   *
   * @param newest version of the language that the system has
   */
  public static List<Kernel> kernels(MetalDevice device, LanguageVersion newest) {
    List<Kernel> kernels = new ArrayList<>();
    families(newest)
        .forEach(
            (family, names) -> {
              LanguageVersion version =
                  KernelLibrary.tensorFamilies().containsKey(family)
                      ? LanguageVersion.MSL_4_0
                      : LanguageVersion.MSL_3_1;
              try (MetalLibrary library = compile(device, family, version)) {
                for (String name : names) {
                  kernels.add(kernel(device, library, name));
                }
              }
            });
    return kernels;
  }

  private static Map<String, List<String>> families(LanguageVersion version) {
    Map<String, List<String>> families = new TreeMap<>(KernelLibrary.families());
    if (version == LanguageVersion.MSL_4_0) {
      families.putAll(KernelLibrary.tensorFamilies());
    }
    return families;
  }

  private static Kernel kernel(MetalDevice device, MetalLibrary library, String name) {
    long start = System.nanoTime();
    try (ComputePipeline pipeline = library.pipeline(name)) {
      long micros = micros(start);
      String problem = "";
      if (pipeline.simdWidth() != 32) {
        problem = name + " runs simdgroups of " + pipeline.simdWidth() + ", not of 32";
      } else if (pipeline.staticThreadgroupBytes() > device.maxThreadgroupBytes()) {
        problem = name + " declares more threadgroup memory than there is";
      }
      return new Kernel(
          name, pipeline.maxThreads(), pipeline.staticThreadgroupBytes(), micros, problem);
    } catch (ShaderCompilationException e) {
      return new Kernel(name, 0, 0, micros(start), String.valueOf(e.getMessage()));
    }
  }

  private static MetalLibrary compile(MetalDevice device, String family, LanguageVersion version) {
    return device.compile(family + ".metal", MslToolchain.source(family), version, MathMode.SAFE);
  }

  private static long micros(long start) {
    return (System.nanoTime() - start) / 1000;
  }
}
