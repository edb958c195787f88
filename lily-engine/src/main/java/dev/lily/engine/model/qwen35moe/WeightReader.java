package dev.lily.engine.model.qwen35moe;

import dev.lily.engine.backend.DType;
import dev.lily.engine.backend.MatrixSource;
import dev.lily.engine.checkpoint.Checkpoint;
import dev.lily.engine.checkpoint.CheckpointException;
import dev.lily.engine.checkpoint.CheckpointException.Kind;
import dev.lily.engine.checkpoint.Quantization;
import dev.lily.engine.checkpoint.TensorEntry;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;

/**
 * Finds the tensors of a text decoder in a checkpoint, checks each against the shape the
 * configuration asks for, and hides the difference between the MLX and the Hugging Face layout:
 * name prefixes, fused expert tensors, and norm gains stored without their 1.
 */
final class WeightReader {
  private static final List<String> SKIPPED =
      List.of("vision_tower.", "model.visual.", "mtp.", "language_model.mtp.");
  private static final ValueLayout.OfShort LE_SHORT =
      ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfFloat LE_FLOAT =
      ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  private final Checkpoint checkpoint;
  private final boolean mlxNames;
  private final boolean zeroCentredGains;
  private final Set<String> used = new HashSet<>();
  private long parameters;

  /**
   * Looks at the layout.
   *
   * @param convModule a convolution's module path below the layers' prefix, whose shape tells
   *     whether gains are zero-centred: {@code [channels, taps, 1]} is converted, {@code [channels,
   *     1, taps]} is raw
   */
  WeightReader(Checkpoint checkpoint, String convModule) {
    this.checkpoint = checkpoint;
    mlxNames =
        checkpoint.tensorNames().stream()
            .anyMatch(name -> name.startsWith("language_model.model."));
    TensorEntry conv = entry(model(convModule) + ".weight");
    zeroCentredGains = conv.shape().size() != 3 || conv.shape().get(2) != 1;
  }

  /** Bytes of all tensors that a text decoder reads. */
  static long textBytes(Checkpoint checkpoint) {
    long bytes = 0;
    for (String name : checkpoint.tensorNames()) {
      if (!isSkipped(name)) {
        bytes += checkpoint.tensor(name).data().byteSize();
      }
    }
    return bytes;
  }

  private static boolean isSkipped(String name) {
    return SKIPPED.stream().anyMatch(name::startsWith);
  }

  private String model(String module) {
    return (mlxNames ? "language_model.model." : "model.language_model.") + module;
  }

  /** Parameters read so far; a quantised weight counts once. */
  long parameters() {
    return parameters;
  }

  /** The output projection, which lies beside the model. */
  MatrixSource lmHead(int rows, int columns) {
    return stack((mlxNames ? "language_model." : "") + "lm_head", 1, rows, columns);
  }

  MatrixSource matrix(String module, int rows, int columns) {
    return stack(model(module), 1, rows, columns);
  }

  /** One projection of all experts, {@code [experts, rows, columns]}. */
  MatrixSource experts(String mlp, String projection, int experts, int rows, int columns) {
    String fused =
        model(mlp) + ".experts." + (projection.equals("down_proj") ? projection : "gate_up_proj");
    if (!checkpoint.tensorNames().contains(fused)) {
      return stack(model(mlp) + ".switch_mlp." + projection, experts, rows, columns);
    }
    if (projection.equals("down_proj")) {
      return dense(entry(fused), experts, rows, columns, List.of(experts, rows, columns), 0);
    }
    int half = projection.equals("gate_proj") ? 0 : 1;
    return dense(entry(fused), experts, rows, columns, List.of(experts, 2 * rows, columns), half);
  }

  /** A gain of the model's RMSNorms, with its 1. */
  float[] normGain(String name, int size) {
    float[] gain = vector(name, size);
    if (zeroCentredGains) {
      for (int i = 0; i < size; i++) {
        gain[i] += 1;
      }
    }
    double mean = 0;
    for (float g : gain) {
      mean += g / size;
    }
    if (!(mean > 0)) {
      throw corrupt(
          entry(model(name)),
          "has a mean gain of %s; it must be positive. The checkpoint mixes the raw and the converted layout"
              .formatted(mean));
    }
    return gain;
  }

  /** A small tensor of one logical axis, as fp32. */
  float[] vector(String name, int size) {
    return values(entry(model(name)), size, List.of((long) size));
  }

  /** The convolution's taps, {@code [channels, taps]}. */
  float[] convolution(String name, int channels, int taps) {
    TensorEntry entry = entry(model(name));
    List<Long> shape =
        zeroCentredGains
            ? List.of((long) channels, 1L, (long) taps)
            : List.of((long) channels, (long) taps, 1L);
    return values(entry, channels * taps, shape);
  }

  /**
   * Refuses text tensors that nothing read: a drifted name would otherwise become silent garbage.
   */
  void requireAllUsed() {
    Set<String> unexpected = new TreeSet<>();
    for (String name : checkpoint.tensorNames()) {
      if (!used.contains(name) && !isSkipped(name)) {
        unexpected.add(name);
      }
    }
    if (!unexpected.isEmpty()) {
      throw new CheckpointException(
          Kind.UNSUPPORTED,
          checkpoint.directory(),
          "%d tensors are not part of a %s text decoder, the first is '%s'. Is config.json the one of these weights?"
              .formatted(unexpected.size(), Qwen35Config.MODEL_TYPE, unexpected.iterator().next()));
    }
  }

  private MatrixSource stack(String module, int matrices, int rows, int columns) {
    Optional<Quantization.Setting> setting =
        checkpoint.quantization().flatMap(quantization -> quantization.of(module));
    TensorEntry weight = entry(module + ".weight");
    if (setting.isEmpty()) {
      return dense(weight, matrices, rows, columns, shape(matrices, rows, columns), 0);
    }
    int bits = setting.get().bits();
    int groupSize = setting.get().groupSize();
    if (bits != 4 && bits != 8) {
      throw unsupported(weight, "has " + bits + " bits; 4 and 8 are supported");
    }
    if (columns % groupSize != 0 || columns * bits % 32 != 0) {
      throw unsupported(
          weight,
          "has %d input features, not a multiple of its group size %d"
              .formatted(columns, groupSize));
    }
    TensorEntry scales = entry(module + ".scales");
    TensorEntry biases = entry(module + ".biases");
    require(weight, "U32", shape(matrices, rows, columns * bits / 32));
    require(scales, "BF16", shape(matrices, rows, columns / groupSize));
    require(biases, "BF16", shape(matrices, rows, columns / groupSize));
    return count(
        new MatrixSource.Affine(
            module,
            matrices,
            rows,
            columns,
            groupSize,
            bits,
            weight.data(),
            scales.data(),
            biases.data()));
  }

  private MatrixSource dense(
      TensorEntry entry, int matrices, int rows, int columns, List<Integer> shape, int part) {
    DType dtype = dtype(entry);
    require(entry, entry.dtype(), shape);
    long matrixBytes = (long) rows * columns * dtype.bytes();
    long stride = entry.data().byteSize() / matrices;
    MemorySegment values = entry.data().asSlice(part * matrixBytes);
    return count(
        new MatrixSource.Dense(entry.name(), matrices, rows, columns, dtype, stride, values));
  }

  private <S extends MatrixSource> S count(S source) {
    parameters += (long) source.numMatrices() * source.rows() * source.columns();
    return source;
  }

  private float[] values(TensorEntry entry, int size, List<Long> shape) {
    if (!entry.shape().equals(shape)) {
      throw wrongShape(entry, shape.toString());
    }
    DType dtype = dtype(entry);
    float[] values = new float[size];
    for (int i = 0; i < size; i++) {
      values[i] =
          switch (dtype) {
            case F32 -> entry.data().get(LE_FLOAT, 4L * i);
            case BF16 -> Float.intBitsToFloat(entry.data().get(LE_SHORT, 2L * i) << 16);
          };
    }
    parameters += size;
    return values;
  }

  private TensorEntry entry(String name) {
    TensorEntry entry = checkpoint.tensor(name);
    used.add(name);
    return entry;
  }

  private static List<Integer> shape(int matrices, int rows, int columns) {
    return matrices == 1 ? List.of(rows, columns) : List.of(matrices, rows, columns);
  }

  private static void require(TensorEntry entry, String dtype, List<Integer> shape) {
    if (!entry.dtype().equals(dtype)) {
      throw unsupported(entry, "is " + entry.dtype() + "; " + dtype + " is expected here");
    }
    if (!entry.shape().equals(shape.stream().map(Integer::longValue).toList())) {
      throw wrongShape(entry, shape.toString());
    }
  }

  private static DType dtype(TensorEntry entry) {
    return switch (entry.dtype()) {
      case "F32" -> DType.F32;
      case "BF16" -> DType.BF16;
      default ->
          throw unsupported(
              entry,
              "is " + entry.dtype() + "; BF16 and F32 are supported for unquantised weights");
    };
  }

  private static CheckpointException wrongShape(TensorEntry entry, String expected) {
    return corrupt(
        entry,
        "is %s; config.json asks for %s. Do config.json and the weights belong together?"
            .formatted(entry.shape(), expected));
  }

  private static CheckpointException corrupt(TensorEntry entry, String problem) {
    return new CheckpointException(
        Kind.CORRUPT, entry.file(), "Tensor '" + entry.name() + "' " + problem);
  }

  private static CheckpointException unsupported(TensorEntry entry, String problem) {
    return new CheckpointException(
        Kind.UNSUPPORTED, entry.file(), "Tensor '" + entry.name() + "' " + problem);
  }
}
