package dev.lily.metal.kernel;

import dev.lily.metal.device.ComputePipeline;
import java.util.EnumMap;
import java.util.Map;
import java.util.function.Function;
import java.util.function.Predicate;

/** Kernels that differ in one choice. */
final class Pipelines<K extends Enum<K>> {
  private final Map<K, ComputePipeline> pipelines;

  private Pipelines(Map<K, ComputePipeline> pipelines) {
    this.pipelines = pipelines;
  }

  /** One for every constant that exists. */
  static <K extends Enum<K>> Pipelines<K> of(
      KernelLibrary library, Class<K> keys, Predicate<K> exists, Function<K, String> name) {
    Map<K, ComputePipeline> pipelines = new EnumMap<>(keys);
    for (K key : keys.getEnumConstants()) {
      if (exists.test(key)) {
        pipelines.put(key, library.pipeline(name.apply(key)));
      }
    }
    return new Pipelines<>(pipelines);
  }

  /** One for every format. */
  static Pipelines<WeightFormat> ofFormats(
      KernelLibrary library, Function<WeightFormat, String> name) {
    return of(library, WeightFormat.class, format -> true, name);
  }

  ComputePipeline get(K key) {
    ComputePipeline pipeline = pipelines.get(key);
    if (pipeline == null) {
      throw new IllegalArgumentException("There is no kernel for " + key);
    }
    return pipeline;
  }
}
