package dev.lily.engine.generation;

import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Where callers' threads and the engine thread meet: requests on their way in, the wish to close,
 * and the signal that makes the engine thread look. Thread-safe; the engine thread takes no lock.
 */
final class Inbox {
  private final int places;
  private final int queueLimit;
  private final Counters counters;
  private final ConcurrentLinkedQueue<Session> incoming = new ConcurrentLinkedQueue<>();
  private final AtomicInteger outstanding = new AtomicInteger();

  /** Makes "not closed, so put in" one step, so that nothing is put in after the last look. */
  private final ReentrantLock entrance = new ReentrantLock();

  private volatile boolean closed;
  private volatile long closeBy;
  private volatile @Nullable Thread engine;

  /**
   * @param places requests that can be served at the same time
   * @param queueLimit requests that may wait beside them
   */
  Inbox(int places, int queueLimit, Counters counters) {
    this.places = places;
    this.queueLimit = queueLimit;
    this.counters = counters;
  }

  void engine(Thread thread) {
    engine = thread;
  }

  boolean isEngineThread() {
    return Thread.currentThread() == engine;
  }

  /** Makes the engine thread look soon; cheap and never blocks. */
  void signal() {
    LockSupport.unpark(engine);
  }

  /**
   * Refuses when a request has no chance to be taken in now.
   *
   * @throws EngineClosedException after {@link #close}
   * @throws EngineBusyException if all places and the queue are taken
   */
  void checkOpen() {
    if (closed) {
      throw new EngineClosedException("The engine is closed and takes no more requests");
    }
    int taken = outstanding.get();
    if (taken >= (long) places + queueLimit) {
      counters.countRejected();
      int queued = Math.max(0, taken - counters.running());
      throw new EngineBusyException(queued, queueLimit, counters.retryAfter(queued, places));
    }
  }

  /** Takes a request in, or refuses as {@link #checkOpen}. */
  void submit(Session session) {
    entrance.lock();
    try {
      checkOpen();
      outstanding.incrementAndGet();
      counters.countSubmitted();
      incoming.add(session);
    } finally {
      entrance.unlock();
    }
    signal();
  }

  /** The next request on its way in. Engine thread only. */
  @Nullable Session poll() {
    return incoming.poll();
  }

  /** A request ended; its place is free. Engine thread only. */
  void leave() {
    outstanding.decrementAndGet();
  }

  /** Requests taken in and not ended. */
  int outstanding() {
    return outstanding.get();
  }

  /**
   * Takes nothing more in. May be called again to shorten the grace, not to lengthen it.
   *
   * @param by when running requests are ended, on the scale of the scheduler's clock
   */
  void close(long by) {
    entrance.lock();
    try {
      if (!closed || by - closeBy < 0) {
        closeBy = by;
      }
      closed = true;
    } finally {
      entrance.unlock();
    }
    signal();
  }

  boolean isClosed() {
    return closed;
  }

  /** When running requests are to be ended; meaningful once closed. */
  long closeBy() {
    return closeBy;
  }
}
