package dev.lily.engine.backend.cpu;

import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.cpu.kernel.CpuKernels;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Where 4-bit weights lie. */
enum WeightPlacement {
  /** In the checkpoint's mapping. */
  MAPPED,
  /** In a packed copy. */
  PACKED,
  /** In a packed copy, if it leaves a quarter of the memory to all else. */
  PACKED_IF_IT_FITS;

  private static final Logger log = LoggerFactory.getLogger(WeightPlacement.class);

  /**
   * What an option asks for.
   *
   * @param word {@code auto}, {@code mapped} or {@code packed}
   * @throws BackendException for another word, and for {@code packed} with kernels that have no use
   *     for it
   */
  static WeightPlacement of(String word, CpuKernels kernels) {
    boolean useful = kernels.matmul().packs();
    return switch (word) {
      case "auto" -> useful ? PACKED_IF_IT_FITS : MAPPED;
      case "mapped" -> MAPPED;
      case "packed" -> {
        if (!useful) {
          throw new BackendException(
              "weights is 'packed', but the %s kernels read them as they are; choose auto or mapped"
                  .formatted(kernels.detail()));
        }
        yield PACKED;
      }
      default ->
          throw new BackendException(
              "weights is '%s'; it must be auto, mapped or packed".formatted(word));
    };
  }

  /**
   * Settles the placement of so many bytes; says so if they stay where they are for want of room.
   */
  boolean packs(long bytes, long budgetBytes) {
    return switch (this) {
      case MAPPED -> false;
      case PACKED -> true;
      case PACKED_IF_IT_FITS -> {
        long most = budgetBytes - budgetBytes / 4;
        if (bytes > most) {
          log.warn(
              "Weights stay as they are in the checkpoint, which is slower: a packed copy of {} MiB"
                  + " would take more than three quarters of the {} MiB that may be used"
                  + " (lily.cpu.weights=packed makes it anyway)",
              bytes >> 20,
              budgetBytes >> 20);
        }
        yield bytes <= most;
      }
    };
  }
}
