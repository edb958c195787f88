package dev.lily.engine.checkpoint;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Copies small tensors of a checkpoint to the heap for tests. */
public final class CheckpointValues {
  private CheckpointValues() {}

  /** The values of an F32 or BF16 tensor. */
  public static float[] floats(TensorEntry tensor) {
    return switch (tensor.dtype()) {
      case "F32" -> {
        float[] values = new float[elements(tensor, 4)];
        buffer(tensor).asFloatBuffer().get(values);
        yield values;
      }
      case "BF16" -> {
        short[] patterns = shorts(tensor);
        float[] values = new float[patterns.length];
        for (int i = 0; i < values.length; i++) {
          values[i] = Bf16.toFloat(patterns[i]);
        }
        yield values;
      }
      default -> throw new IllegalArgumentException(tensor.name() + " is " + tensor.dtype());
    };
  }

  /** The codes, scales and offsets of a quantised module. */
  public static AffineGroups groups(Checkpoint checkpoint, String module) {
    Quantization.Setting setting = checkpoint.quantization().orElseThrow().of(module).orElseThrow();
    TensorEntry weight = checkpoint.tensor(module + ".weight");
    int[] words = new int[elements(weight, 4)];
    buffer(weight).asIntBuffer().get(words);
    return new AffineGroups(
        setting.bits(),
        setting.groupSize(),
        words,
        shorts(checkpoint.tensor(module + ".scales")),
        shorts(checkpoint.tensor(module + ".biases")));
  }

  private static short[] shorts(TensorEntry tensor) {
    short[] patterns = new short[elements(tensor, 2)];
    buffer(tensor).asShortBuffer().get(patterns);
    return patterns;
  }

  private static int elements(TensorEntry tensor, int bytes) {
    return Math.toIntExact(tensor.data().byteSize() / bytes);
  }

  private static ByteBuffer buffer(TensorEntry tensor) {
    return tensor.data().asByteBuffer().order(ByteOrder.LITTLE_ENDIAN);
  }
}
