package dev.lily.engine.generation.disk;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The thread that reads and writes, named {@value #THREAD_NAME}, and the buffers in which pieces go
 * to it and come from it. Jobs run one after the other, in the order they were given.
 */
public final class DiskWorker {
  static final String THREAD_NAME = "lily-disk";

  /** Most bytes of all buffers together, as long as two pieces are not larger. */
  public static final long BUFFER_BYTES = 32L << 20;

  private static final int MOST_BUFFERS = 32;
  private static final int FEWEST_BUFFERS = 2;
  private static final Logger log = LoggerFactory.getLogger(DiskWorker.class);

  private final ExecutorService executor;
  private final Runnable signal;
  private final long pieceBytes;
  private final int mostBuffers;
  private final Arena arena = Arena.ofShared();
  private final ConcurrentLinkedQueue<MemorySegment> free = new ConcurrentLinkedQueue<>();
  private int numBuffers;

  /**
   * @param executor runs jobs in order; closed with the worker
   * @param signal called after each job; must return at once
   */
  public DiskWorker(ExecutorService executor, EntryShape shape, Runnable signal) {
    this.executor = executor;
    this.signal = signal;
    pieceBytes = shape.pieceBytes();
    mostBuffers = Math.clamp(BUFFER_BYTES / pieceBytes, FEWEST_BUFFERS, MOST_BUFFERS);
  }

  /** The thread of a worker. */
  public static ExecutorService thread() {
    return Executors.newSingleThreadExecutor(
        Thread.ofPlatform().name(THREAD_NAME).daemon().factory());
  }

  /** A buffer for one piece; {@code null} if all are on their way. Engine thread only. */
  public @Nullable MemorySegment takeBuffer() {
    MemorySegment buffer = free.poll();
    if (buffer == null && numBuffers < mostBuffers) {
      buffer = arena.allocate(pieceBytes, Long.BYTES);
      numBuffers++;
    }
    return buffer;
  }

  /** Gives a buffer back. Any thread. */
  public void giveBack(MemorySegment buffer) {
    free.add(buffer);
  }

  /** Has a job done later. One that is given after {@link #close} is not done. */
  public void submit(Runnable job) {
    try {
      executor.execute(
          () -> {
            try {
              job.run();
            } catch (Throwable e) {
              log.error("The disk tier of the prefix cache failed", e);
            }
            signal.run();
          });
    } catch (RejectedExecutionException e) {
      log.debug("The disk tier is closed");
    }
  }

  /**
   * Lets the jobs that were given end, for a limited time.
   *
   * @return whether they have; if not, the buffers are not freed
   */
  public boolean close(long nanos) {
    executor.shutdown();
    boolean ended = await(nanos);
    if (!ended) {
      executor.shutdownNow();
      ended = await(nanos);
    }
    if (ended) {
      arena.close();
    }
    return ended;
  }

  private boolean await(long nanos) {
    try {
      return executor.awaitTermination(nanos, TimeUnit.NANOSECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return executor.isTerminated();
    }
  }
}
