package dev.lily.metal.objc;

/**
 * Objects that methods hand out without ownership die when the pool around the call closes. Pools
 * nest like brackets on one thread.
 */
public final class AutoreleasePool implements AutoCloseable {
  private static final CFunction PUSH =
      CFunction.in(ObjcRuntime.library(), "objc_autoreleasePoolPush");
  private static final CFunction POP =
      CFunction.in(ObjcRuntime.library(), "objc_autoreleasePoolPop");

  private final Thread thread = Thread.currentThread();
  private long token;

  private AutoreleasePool(long token) {
    this.token = token;
  }

  /** For try-with-resources. */
  public static AutoreleasePool open() {
    return new AutoreleasePool(push());
  }

  /** For hot paths: as {@link #open} without an object. */
  public static long push() {
    return PUSH.callForLong();
  }

  /** Closes the pool of this token, and any that was opened on this thread after it. */
  public static void pop(long token) {
    POP.call(token);
  }

  @Override
  public void close() {
    if (token == 0) {
      return;
    }
    if (Thread.currentThread() != thread) {
      throw new IllegalStateException(
          "An autorelease pool of thread " + thread.getName() + " must be closed there");
    }
    pop(token);
    token = 0;
  }
}
