package dev.lily.metal.kernel;

import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.Tensor;
import dev.lily.engine.backend.TensorUse;
import dev.lily.metal.device.MetalBuffer;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Activations. A tensor has the type of what was last written to it; memory of a type is allocated
 * when the type is first written. Values of another type than an operation reads are converted,
 * which happens in no model, only where a test fills tensors through {@code embed}.
 */
public final class MetalTensor implements Tensor {
  /** What the rows of a tensor are. */
  public enum RowOrder {
    /** Rows of the plan, in the device's order. */
    PLAN,
    /** Rows that need logits, in the device's order. */
    LOGITS
  }

  private final DeviceMemory memory;
  private final int rows;
  private final int columns;
  private @Nullable Region wide;
  private @Nullable Region narrow;
  private @Nullable Region spare;
  private ElementType type = ElementType.F32;
  private RowOrder order = RowOrder.PLAN;

  public MetalTensor(DeviceMemory memory, int rows, int columns) {
    this.memory = memory;
    this.rows = rows;
    this.columns = columns;
  }

  /** An fp32 constant of one row. */
  public static MetalTensor constant(DeviceMemory memory, float[] values) {
    MetalTensor tensor = new MetalTensor(memory, 1, values.length);
    tensor
        .region(ElementType.F32)
        .buffer()
        .contents()
        .asSlice(0, (long) values.length * Float.BYTES)
        .copyFrom(MemorySegment.ofArray(values));
    return tensor;
  }

  /**
   * The implementation of a tensor.
   *
   * @throws BackendException if it is another back end's
   */
  public static MetalTensor of(Tensor tensor) {
    if (tensor instanceof MetalTensor metal) {
      return metal;
    }
    throw new BackendException(
        "The Metal back end was given a "
            + tensor.getClass().getName()
            + "; it takes its own only");
  }

  /** Bytes of the memory of one type. */
  public static long bytes(int rows, int columns, ElementType type) {
    return DeviceMemory.paddedBytes((long) rows * columns * type.bytes());
  }

  /** Bytes of all memory that a tensor comes to have in a model. */
  public static long bytes(TensorUse use, int rows, int columns) {
    return switch (use) {
      case RESIDUAL -> 2 * bytes(rows, columns, ElementType.F32); // values, and spare
      case HIDDEN -> bytes(rows, columns, ElementType.BF16);
      case GATE -> 0;
      case LOGITS -> bytes(rows, columns, ElementType.F32);
    };
  }

  @Override
  public int rows() {
    return rows;
  }

  @Override
  public int columns() {
    return columns;
  }

  public RowOrder order() {
    return order;
  }

  /** The type of what it holds. */
  public ElementType type() {
    return type;
  }

  /** The memory of what it holds. */
  public Region current() {
    return region(type);
  }

  /** The memory to write values of a type to, which it holds from now on. */
  public Region written(ElementType newType, RowOrder newOrder) {
    type = newType;
    order = newOrder;
    return region(newType);
  }

  Region region(ElementType wanted) {
    return switch (wanted) {
      case F32 -> {
        if (wide == null) {
          wide = allocate(wanted);
        }
        yield wide;
      }
      case BF16 -> {
        if (narrow == null) {
          narrow = allocate(wanted);
        }
        yield narrow;
      }
    };
  }

  /** Memory for the next values of an fp32 tensor, beside those it holds. */
  Region spare() {
    if (spare == null) {
      spare = allocate(ElementType.F32);
    }
    return spare;
  }

  /** The spare memory holds the values from now on. */
  void takeSpare() {
    Region values = spare();
    spare = wide;
    wide = values;
    type = ElementType.F32;
  }

  private Region allocate(ElementType wanted) {
    MetalBuffer buffer = memory.allocatePoisoned(bytes(rows, columns, wanted));
    memory.commit();
    return new Region(buffer);
  }

  /** Checks a shape. */
  public MetalTensor require(String operand, int minRows, int wantedColumns) {
    if (columns != wantedColumns || rows < minRows) {
      throw new BackendException(
          "Operand '%s' is [%d, %d]; [%d, %d] is needed"
              .formatted(operand, rows, columns, minRows, wantedColumns));
    }
    return this;
  }

  /** Elements of a buffer as fp32. */
  public static void read(
      MetalBuffer buffer, ElementType type, long from, float[] to, int at, int count) {
    switch (type) {
      case F32 ->
          MemorySegment.copy(
              buffer.contents(), ValueLayout.JAVA_FLOAT, from * Float.BYTES, to, at, count);
      case BF16 -> {
        for (int i = 0; i < count; i++) {
          int bits = buffer.contents().getAtIndex(ValueLayout.JAVA_SHORT, from + i) << 16;
          to[at + i] = Float.intBitsToFloat(bits);
        }
      }
    }
  }

  @Override
  public String toString() {
    return "MetalTensor" + Arrays.asList(rows, columns) + " of " + type;
  }
}
