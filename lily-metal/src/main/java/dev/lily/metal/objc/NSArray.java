package dev.lily.metal.objc;

/** Reading an {@code NSArray}. */
public final class NSArray {
  private NSArray() {}

  public static long count(long array) {
    return MessageSend.sendForLong(array, FoundationSelectors.COUNT);
  }

  /** The element, not retained. */
  public static long get(long array, long index) {
    return MessageSend.sendForLong(array, FoundationSelectors.OBJECT_AT_INDEX, index);
  }
}
