package dev.lily.metal.objc;

/**
 * One reference to an Objective-C object, given back once by {@link #close}. Made from an object
 * that the caller owns (from a method whose name begins with new, alloc or copy, or retained).
 */
public class ObjcObject implements AutoCloseable {
  private static final CFunction RETAIN = CFunction.in(ObjcRuntime.library(), "objc_retain");
  private static final CFunction RELEASE = CFunction.in(ObjcRuntime.library(), "objc_release");

  private long id;

  /**
   * Takes over the caller's reference.
   *
   * @throws IllegalArgumentException if the object is nil
   */
  protected ObjcObject(long owned) {
    if (owned == 0) {
      throw new IllegalArgumentException("nil is no object");
    }
    this.id = owned;
  }

  /** A new instance of a class: {@code [name new]}. */
  public static ObjcObject newInstance(String className) {
    long type = ObjcRuntime.requireClass(className);
    return new ObjcObject(MessageSend.sendForLong(type, FoundationSelectors.NEW));
  }

  /** Takes one more reference; returns the object. */
  public static long retain(long object) {
    return RETAIN.callForLong(object);
  }

  /** Gives one reference back. */
  public static void release(long object) {
    RELEASE.call(object);
  }

  /** Whether the object, nil excepted, has this method. */
  public static boolean respondsTo(long object, Selector selector) {
    return MessageSend.sendForBoolean(
        object, FoundationSelectors.RESPONDS_TO_SELECTOR, selector.address());
  }

  /**
   * The object, to send messages to.
   *
   * @throws IllegalStateException if closed
   */
  public final long id() {
    if (id == 0) {
      throw new IllegalStateException(getClass().getSimpleName() + " is closed");
    }
    return id;
  }

  public final boolean isClosed() {
    return id == 0;
  }

  /** Ends the use of this object; the reference passes to the caller. 0 if already closed. */
  protected final long detach() {
    long owned = id;
    id = 0;
    return owned;
  }

  /** Releases the reference; a second call does nothing. */
  @Override
  public void close() {
    long owned = detach();
    if (owned != 0) {
      release(owned);
    }
  }
}
