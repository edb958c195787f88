package dev.lily.engine.model;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** Something one thread does and another waits for; a test that waits in vain fails. */
public final class Signal {
  private static final long PATIENCE_SECONDS = 60;

  private final CountDownLatch latch = new CountDownLatch(1);

  public void fire() {
    latch.countDown();
  }

  public void await() {
    try {
      if (!latch.await(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
        throw new AssertionError("Nothing came in " + PATIENCE_SECONDS + " s");
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new AssertionError("Interrupted while waiting", e);
    }
  }
}
