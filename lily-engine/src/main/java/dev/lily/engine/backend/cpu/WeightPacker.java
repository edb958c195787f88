package dev.lily.engine.backend.cpu;

import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.cpu.kernel.AffineMatrix;
import dev.lily.engine.backend.cpu.kernel.BlockPacker;
import dev.lily.engine.backend.cpu.kernel.CpuMatrix;
import dev.lily.engine.backend.cpu.kernel.PackedMatrix;
import dev.lily.engine.backend.cpu.kernel.WorkerPool;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Makes packed copies of 4-bit matrices in native memory, which it owns. Their pages of the
 * checkpoint are not read again; being clean, the system drops them when it needs the memory.
 */
final class WeightPacker implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(WeightPacker.class);
  private static final long ALIGNMENT = 64;
  private static final int BLOCKS_PER_PART = 16;
  private static final long NANOS_BETWEEN_REPORTS = 2_000_000_000L;

  private final WorkerPool pool;
  private final Arena arena = Arena.ofShared();
  private final Copy copy;
  private long bytes;
  private long start;
  private long lastReport;

  WeightPacker(WorkerPool pool) {
    this.pool = pool;
    copy = new Copy(pool.numWorkers());
  }

  /** Bytes of all copies. */
  long bytes() {
    return bytes;
  }

  /**
   * A packed copy; the matrix itself where there is no such layout for it.
   *
   * @param totalBytes of the weights that will come, for the log; 0 if not known
   */
  CpuMatrix pack(AffineMatrix matrix, long totalBytes) {
    if (!PackedMatrix.suits(matrix)) {
      return matrix;
    }
    if (bytes == 0) {
      start = System.nanoTime();
      lastReport = start;
    }
    PackedMatrix packed = new PackedMatrix(matrix, allocate(PackedMatrix.bytes(matrix)));
    copy.source = matrix;
    copy.target = packed;
    pool.run(copy, Compute.ceilDiv(packed.numBlocks(), BLOCKS_PER_PART));
    copy.source = null;
    copy.target = null;
    bytes += packed.values().byteSize();
    report(totalBytes);
    return packed;
  }

  private MemorySegment allocate(long size) {
    try {
      return arena.allocate(size, ALIGNMENT);
    } catch (OutOfMemoryError e) {
      throw new BackendException(
          "The system has no %d MiB for a packed copy of weights beside the %d MiB in use: %s"
              .formatted(size >> 20, bytes >> 20, e.getMessage()),
          e);
    }
  }

  private void report(long totalBytes) {
    long now = System.nanoTime();
    if (now - lastReport > NANOS_BETWEEN_REPORTS) {
      lastReport = now;
      if (totalBytes > 0) {
        log.info(
            "Packing weights: {} of {} MiB ({} %)",
            bytes >> 20, totalBytes >> 20, Math.min(100, 100 * bytes / totalBytes));
      } else {
        log.info("Packing weights: {} MiB", bytes >> 20);
      }
    }
  }

  /** Says in the log what was made. */
  void finish() {
    if (bytes > 0) {
      log.info(
          "Packed {} MiB of weights in {} ms on {} threads",
          bytes >> 20,
          (System.nanoTime() - start) / 1_000_000,
          pool.numWorkers());
    }
  }

  @Override
  public void close() {
    arena.close();
  }

  private static final class Copy implements WorkerPool.Task {
    private @Nullable AffineMatrix source;
    private @Nullable PackedMatrix target;
    private final BlockPacker[] packers;

    Copy(int workers) {
      packers = new BlockPacker[workers];
      Arrays.setAll(packers, i -> new BlockPacker());
    }

    @Override
    public void run(int part, int worker) {
      AffineMatrix from = Objects.requireNonNull(source);
      PackedMatrix to = Objects.requireNonNull(target);
      int end = Math.min(to.numBlocks(), (part + 1) * BLOCKS_PER_PART);
      for (int block = part * BLOCKS_PER_PART; block < end; block++) {
        packers[worker].pack(from, to, block);
      }
    }
  }
}
