package dev.lily.engine.backend.cpu.kernel;

import dev.lily.engine.backend.BackendException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * Runs the parts of a task on the calling thread and on daemon threads named {@code lily-cpu-N}.
 * Which thread runs a part is left to chance, so a part's result must not depend on it. One caller
 * at a time; a dispatch allocates nothing.
 */
public final class WorkerPool implements AutoCloseable {
  /** Work that is cut into numbered parts. Kept and reused by its owner. */
  public interface Task {
    /**
     * Computes one part.
     *
     * @param part number of the part
     * @param worker number of the thread, below {@link WorkerPool#numWorkers}, for its own scratch
     */
    void run(int part, int worker);
  }

  private static final int MAX_PARTS = 1 << 20;
  private static final long PART_MASK = MAX_PARTS - 1;
  // A thread that waits spins for some microseconds, then lets others run, of which one may be the
  // very thread it waits for, and parks after about as long as the longest serial step of a pass.
  private static final int SPINS = 400;
  private static final int YIELDS = 60;

  private static final Task NOTHING = (part, worker) -> {};

  // generation << 40 | parts << 20 | next: a thread that is late can only fail to claim.
  private final AtomicLong claims = new AtomicLong();
  private final AtomicInteger done = new AtomicInteger();
  private final Worker[] workers;
  private Task task = NOTHING;
  private volatile @Nullable Thread waiting;
  private volatile @Nullable Throwable failure;
  private volatile boolean closed;

  /**
   * Starts the threads.
   *
   * @param threads threads that compute, the calling one included; at least 1
   */
  public WorkerPool(int threads) {
    workers = new Worker[threads - 1];
    for (int i = 0; i < workers.length; i++) {
      workers[i] = new Worker(i + 1);
    }
    for (Worker worker : workers) {
      worker.thread.start();
    }
  }

  /** Threads that compute, the calling one included. */
  public int numWorkers() {
    return workers.length + 1;
  }

  /**
   * Runs every part and returns when all are done.
   *
   * @throws BackendException if a part threw; the others have run
   */
  public void run(Task task, int parts) {
    if (parts < 0 || parts >= MAX_PARTS) {
      throw new IllegalArgumentException(parts + " parts; at most " + (MAX_PARTS - 1));
    }
    if (parts == 1) {
      runAlone(task);
      return;
    }
    this.task = task;
    failure = null;
    done.set(0);
    long generation = (claims.get() >>> 40) + 1;
    claims.set(generation << 40 | (long) parts << 20);
    for (int i = 0; i < workers.length && i < parts - 1; i++) {
      workers[i].wake();
    }
    work(0);
    awaitOthers(parts);
    this.task = NOTHING;
    Throwable thrown = failure;
    if (thrown != null) {
      failure = null;
      throw failed(thrown);
    }
  }

  /** A single part is done sooner than another thread notices it. */
  private static void runAlone(Task task) {
    try {
      task.run(0, 0);
    } catch (Throwable t) {
      throw failed(t);
    }
  }

  private static BackendException failed(Throwable thrown) {
    return thrown instanceof BackendException known
        ? known
        : new BackendException("A CPU kernel failed: " + thrown, thrown);
  }

  private void awaitOthers(int parts) {
    for (int tries = 0; done.get() < parts; tries++) {
      if (!pause(tries)) {
        waiting = Thread.currentThread();
        if (done.get() < parts) {
          LockSupport.park(this);
        }
        waiting = null;
      }
    }
  }

  /** Passes a moment; false if it is time to park. Yielding is for speed: nothing relies on it. */
  @SuppressWarnings("ThreadPriorityCheck")
  private static boolean pause(int tries) {
    if (tries < SPINS) {
      Thread.onSpinWait();
    } else if (tries < SPINS + YIELDS) {
      Thread.yield();
    } else {
      return false;
    }
    return true;
  }

  /** Runs parts until none is left; true if it ran any. */
  private boolean work(int worker) {
    int ran = 0;
    int all;
    for (long claim = claims.get(); ; ) {
      all = (int) (claim >>> 20 & PART_MASK);
      int part = (int) (claim & PART_MASK);
      if (part >= all) {
        break;
      }
      long seen = claims.compareAndExchange(claim, claim + 1);
      if (seen != claim) {
        claim = seen;
        continue;
      }
      try {
        task.run(part, worker);
      } catch (Throwable t) {
        failure = t;
      }
      ran++;
      claim = claims.get();
    }
    if (ran == 0) {
      return false;
    }
    if (done.addAndGet(ran) == all) {
      Thread waiter = waiting;
      if (waiter != null) {
        LockSupport.unpark(waiter);
      }
    }
    return true;
  }

  /** Ends the threads. No task may be running. */
  @Override
  public void close() {
    closed = true;
    for (Worker worker : workers) {
      LockSupport.unpark(worker.thread);
    }
  }

  private final class Worker implements Runnable {
    private final int number;
    private final Thread thread;
    private volatile boolean parked;

    Worker(int number) {
      this.number = number;
      thread = Thread.ofPlatform().daemon().name("lily-cpu-" + number).unstarted(this);
    }

    void wake() {
      if (parked) {
        LockSupport.unpark(thread);
      }
    }

    @Override
    public void run() {
      int idle = 0;
      while (!closed) {
        if (work(number)) {
          idle = 0;
        } else if (!pause(idle++)) {
          sleep();
        }
      }
    }

    private void sleep() {
      parked = true;
      long claim = claims.get();
      if (!closed && (claim & PART_MASK) >= (claim >>> 20 & PART_MASK)) {
        LockSupport.park(WorkerPool.this);
      }
      parked = false;
    }
  }
}
