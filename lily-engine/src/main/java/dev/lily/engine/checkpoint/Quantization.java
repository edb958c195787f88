package dev.lily.engine.checkpoint;

import java.util.Map;
import java.util.Optional;

/**
 * The {@code quantization} block of {@code config.json}: a default and per-module overrides.
 *
 * @param groupSize default group size
 * @param bits default bits
 * @param overrides settings by module name; an empty value means "not quantised"
 */
public record Quantization(
    int groupSize, int bits, Map<String, Optional<Quantization.Setting>> overrides) {

  /** Settings of one module. */
  public record Setting(int groupSize, int bits) {}

  public Quantization {
    overrides = Map.copyOf(overrides);
  }

  /** Settings of a module, by its name without {@code .weight}; empty if it is not quantised. */
  public Optional<Setting> of(String module) {
    return overrides.getOrDefault(module, Optional.of(new Setting(groupSize, bits)));
  }
}
