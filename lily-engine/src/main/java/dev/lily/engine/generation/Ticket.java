package dev.lily.engine.generation;

import java.util.concurrent.CountDownLatch;

/** The part of a request that callers and the engine thread share. */
final class Ticket implements GenerationHandle {
  private final String id;
  private final Inbox inbox;
  private final CountDownLatch done = new CountDownLatch(1);
  private volatile boolean cancelled;

  Ticket(String id, Inbox inbox) {
    this.id = id;
    this.inbox = inbox;
  }

  @Override
  public String id() {
    return id;
  }

  @Override
  public void cancel() {
    cancelled = true;
    inbox.signal();
  }

  @Override
  public void wake() {
    inbox.signal();
  }

  @Override
  public boolean isDone() {
    return done.getCount() == 0;
  }

  @Override
  public void await() throws InterruptedException {
    if (inbox.isEngineThread()) {
      throw new IllegalStateException(
          "Request " + id + " is awaited on the engine thread, which would wait for itself");
    }
    done.await();
  }

  boolean isCancelled() {
    return cancelled;
  }

  /** The last event was delivered. */
  void finish() {
    done.countDown();
  }

  @Override
  public String toString() {
    return id;
  }
}
