package dev.lily.metal.kernel;

import java.util.ArrayList;
import java.util.List;

/** Which kernels take a block of experts: pure functions of the shape and the device. */
final class ExpertsRoute {
  static final int MAX_EXPERTS = 1024;
  static final int MAX_PER_TOKEN = 32;

  /** Most columns that the fused kernel stages. */
  static final int MAX_FUSED_HIDDEN = 4096;

  /** Assignments of a tile. */
  static final int TILE_ROWS = 64;

  private static final int CHUNK = 16;

  static final List<String> NAMES = names();

  /** Of the kernels of {@code experts_tensor.metal}. */
  static final List<String> TENSOR_NAMES = tensorNames();

  private ExpertsRoute() {}

  /**
   * Whether decode rows take the two fused kernels; otherwise they take the tiles, as prefill rows
   * do.
   *
   * @param isUniform all six matrices have one format and group size
   * @param maxThreadgroupBytes what the device has
   */
  static boolean isFused(
      boolean isUniform,
      int hidden,
      int intermediate,
      int sharedIntermediate,
      int perToken,
      long maxThreadgroupBytes) {
    return isUniform
        && hidden <= MAX_FUSED_HIDDEN
        && threadgroupBytes(intermediate, sharedIntermediate, perToken) <= maxThreadgroupBytes;
  }

  /** Threadgroup memory of the second fused kernel. */
  static long threadgroupBytes(int intermediate, int sharedIntermediate, int perToken) {
    long padded = (long) perToken * padded(intermediate) + padded(sharedIntermediate);
    return (padded * 9 / 4 + 15) / 16 * 16;
  }

  private static long padded(int columns) {
    return (columns + CHUNK - 1L) / CHUNK * CHUNK;
  }

  /** Most tiles of assignments that are grouped by expert. */
  static int mostTiles(int assignments, int experts) {
    return KernelEncoder.ceilDiv(assignments, TILE_ROWS) + Math.min(experts, assignments);
  }

  static String expand(WeightFormat format) {
    return "experts_expand_" + format.kernelName();
  }

  static String contract(WeightFormat format) {
    return "experts_contract_" + format.kernelName();
  }

  static String expandTiles(WeightFormat format, boolean hasTensorOperations) {
    return tiles("expand", format, hasTensorOperations);
  }

  static String contractTiles(WeightFormat format, boolean hasTensorOperations) {
    return tiles("contract", format, hasTensorOperations);
  }

  private static String tiles(String what, WeightFormat format, boolean hasTensorOperations) {
    String how = hasTensorOperations && format.isAffine() ? "tensor" : "tiles";
    return "experts_%s_%s_%s".formatted(what, how, format.kernelName());
  }

  private static List<String> names() {
    List<String> names =
        new ArrayList<>(List.of("experts_route", "experts_group", "experts_combine"));
    for (WeightFormat format : WeightFormat.values()) {
      names.add(expand(format));
      names.add(contract(format));
      names.add(expandTiles(format, false));
      names.add(contractTiles(format, false));
    }
    return List.copyOf(names);
  }

  private static List<String> tensorNames() {
    List<String> names = new ArrayList<>();
    for (WeightFormat format : WeightFormat.values()) {
      if (format.isAffine()) {
        names.add(expandTiles(format, true));
        names.add(contractTiles(format, true));
      }
    }
    return List.copyOf(names);
  }
}
