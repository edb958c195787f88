package dev.lily.metal.kernel;

import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.DType;
import dev.lily.engine.backend.MatrixSource;
import dev.lily.metal.device.MetalBuffer;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Brings weights to the device. Those that lie in a mapped file at an offset that the kernels can
 * read from stay there; the others are copied.
 */
public final class MatrixLoader {
  private static final Logger log = LoggerFactory.getLogger(MatrixLoader.class);

  /** What copies are aligned to: more than any kernel asks for. */
  private static final long COPY_ALIGNMENT = 256;

  /** Columns that a lane of a product takes at a time: a group is a multiple of it. */
  private static final int CHUNK = 16;

  private record MappedFile(MemorySegment memory, MetalBuffer buffer) {
    long address() {
      return memory.address();
    }

    long byteSize() {
      return memory.byteSize();
    }
  }

  private record Placed(MetalBuffer buffer, long offset) {}

  private final DeviceMemory memory;
  private final List<MappedFile> files = new ArrayList<>();
  private long copiedBytes;
  private int numRead;

  public MatrixLoader(DeviceMemory memory) {
    this.memory = memory;
  }

  /** Wraps a mapped file whole. A mapping that does not start at a page is copied bit by bit. */
  public void map(MemorySegment file) {
    if (file.byteSize() > 0 && memory.canWrap(file)) {
      files.add(new MappedFile(file, memory.wrap(file)));
    }
  }

  /**
   * Reads the mapped files into memory, so that the first pass does not wait for the disk while it
   * keeps the GPU.
   */
  public void readAhead() {
    long bytes = 0;
    long start = System.nanoTime();
    for (; numRead < files.size(); numRead++) {
      MemorySegment file = files.get(numRead).memory;
      if (file.isMapped()) {
        file.load();
        bytes += file.byteSize();
        log.info(
            "Read {} MiB of weights in {} ms: file {} of {}",
            bytes >> 20,
            (System.nanoTime() - start) / 1_000_000,
            numRead + 1,
            files.size());
      }
    }
  }

  /** Bytes of weights that could not stay in their mapping. */
  public long copiedBytes() {
    return copiedBytes;
  }

  /**
   * Loads a matrix.
   *
   * @throws BackendException if no kernel reads its format
   */
  public MetalMatrix load(MatrixSource source) {
    return switch (source) {
      case MatrixSource.Affine affine -> loadAffine(affine);
      case MatrixSource.Dense dense -> loadDense(dense);
    };
  }

  private MetalMatrix loadAffine(MatrixSource.Affine source) {
    if (source.bits() != 4 && source.bits() != 8) {
      throw new BackendException(
          "Matrix '%s' has %d-bit codes; this back end reads 4 and 8"
              .formatted(source.name(), source.bits()));
    }
    if (source.groupSize() % CHUNK != 0) {
      throw new BackendException(
          "Matrix '%s' has groups of %d columns; this back end reads multiples of %d"
              .formatted(source.name(), source.groupSize(), CHUNK));
    }
    WeightFormat format = source.bits() == 4 ? WeightFormat.Q4 : WeightFormat.Q8;
    Placed codes = place(source.codes(), format.alignment());
    Placed scales = place(source.scales(), WeightFormat.BF16.alignment());
    Placed biases = place(source.biases(), WeightFormat.BF16.alignment());
    return new MetalMatrix(
        source.name(),
        format,
        source.numMatrices(),
        source.rows(),
        source.columns(),
        source.groupSize(),
        source.rows(),
        codes.buffer,
        codes.offset,
        scales.buffer,
        scales.offset,
        biases.buffer,
        biases.offset);
  }

  private MetalMatrix loadDense(MatrixSource.Dense source) {
    WeightFormat format = source.dtype() == DType.BF16 ? WeightFormat.BF16 : WeightFormat.F32;
    long rowBytes = (long) source.columns() * source.dtype().bytes();
    boolean wholeRows = source.strideBytes() % rowBytes == 0;
    Placed values =
        wholeRows
            ? place(source.values(), format.alignment())
            : copy(contiguous(source, source.rows() * rowBytes));
    long stackRows = wholeRows ? source.strideBytes() / rowBytes : source.rows();
    return dense(source, format, Math.toIntExact(stackRows), values);
  }

  private static MetalMatrix dense(
      MatrixSource.Dense source, WeightFormat format, int stackRows, Placed values) {
    return new MetalMatrix(
        source.name(),
        format,
        source.numMatrices(),
        source.rows(),
        source.columns(),
        0,
        stackRows,
        values.buffer,
        values.offset,
        values.buffer,
        values.offset,
        values.buffer,
        values.offset);
  }

  private static MemorySegment contiguous(MatrixSource.Dense source, long matrixBytes) {
    byte[] all = new byte[Math.toIntExact(source.numMatrices() * matrixBytes)];
    for (int m = 0; m < source.numMatrices(); m++) {
      MemorySegment.copy(
          source.values(),
          ValueLayout.JAVA_BYTE,
          m * source.strideBytes(),
          all,
          Math.toIntExact(m * matrixBytes),
          Math.toIntExact(matrixBytes));
    }
    return MemorySegment.ofArray(all);
  }

  /**
   * A bf16 matrix as fp32, for kernels that take two matrices of one format.
   *
   * @param matrix not of codes
   */
  MetalMatrix widen(MetalMatrix matrix) {
    long count =
        (long) matrix.stackRows() * (matrix.numMatrices() - 1) * matrix.columns()
            + (long) matrix.rows() * matrix.columns();
    MetalBuffer buffer = memory.allocate(count * Float.BYTES);
    for (long i = 0; i < count; i++) {
      int bits =
          matrix
                  .codes()
                  .contents()
                  .get(ValueLayout.JAVA_SHORT_UNALIGNED, matrix.codesOffset() + i * Short.BYTES)
              << 16;
      buffer.contents().setAtIndex(ValueLayout.JAVA_INT, i, bits);
    }
    return new MetalMatrix(
        matrix.name(),
        WeightFormat.F32,
        matrix.numMatrices(),
        matrix.rows(),
        matrix.columns(),
        0,
        matrix.stackRows(),
        buffer,
        0,
        buffer,
        0,
        buffer,
        0);
  }

  private Placed place(MemorySegment values, int alignment) {
    if (values.isNative()) {
      for (MappedFile file : files) {
        long offset = values.address() - file.address();
        if (offset >= 0
            && offset + values.byteSize() <= file.byteSize()
            && offset % alignment == 0) {
          return new Placed(file.buffer, offset);
        }
      }
    }
    return copy(values);
  }

  private Placed copy(MemorySegment values) {
    long bytes = (values.byteSize() + COPY_ALIGNMENT - 1) / COPY_ALIGNMENT * COPY_ALIGNMENT;
    MetalBuffer buffer = memory.allocate(bytes);
    buffer.contents().asSlice(0, values.byteSize()).copyFrom(values);
    copiedBytes += bytes;
    return new Placed(buffer, 0);
  }
}
