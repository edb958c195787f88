package dev.lily.metal.kernel;

import dev.lily.engine.backend.BackendException;
import java.util.Optional;

/**
 * Whether prefill's products of 4-bit and 8-bit matrices go through Metal 4's tensor operations.
 * GPUs before family 10 run those as ordinary code, slower than {@code simdgroup_matrix}.
 */
public enum TensorOperations {
  /** Where the GPU has hardware for them. */
  AUTO,
  /** Wherever they compile. */
  ALWAYS,
  /** Nowhere. */
  NEVER;

  /**
   * The setting that an option asks for.
   *
   * @throws BackendException if the word is none of the three
   */
  public static TensorOperations of(String word) {
    return switch (word) {
      case "auto" -> AUTO;
      case "always" -> ALWAYS;
      case "never" -> NEVER;
      default ->
          throw new BackendException(
              "tensorOperations is '%s'; it must be auto, always or never".formatted(word));
    };
  }

  /** Why they are not tried; empty if they are. */
  Optional<String> refusal(boolean hasHardware) {
    return switch (this) {
      case AUTO ->
          hasHardware
              ? Optional.empty()
              : Optional.of("this GPU has no hardware for tensor operations");
      case ALWAYS -> Optional.empty();
      case NEVER -> Optional.of("they are switched off");
    };
  }
}
