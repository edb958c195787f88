package dev.lily.metal.objc;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;

/** An owned {@code NSString}. */
public final class NSString extends ObjcObject {
  private static final long UTF8 = 4;

  private NSString(long owned) {
    super(owned);
  }

  /** A copy of the text. */
  public static NSString of(String text) {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment copy = arena.allocate(Math.max(1, bytes.length));
      MemorySegment.copy(bytes, 0, copy, JAVA_BYTE, 0, bytes.length);
      long raw =
          MessageSend.sendForLong(ObjcRuntime.requireClass("NSString"), FoundationSelectors.ALLOC);
      long string =
          MessageSend.sendForLong(
              raw, FoundationSelectors.INIT_WITH_BYTES, copy.address(), bytes.length, UTF8);
      if (string == 0) {
        throw new ObjcException("Making an NSString of " + bytes.length + " bytes returned nil");
      }
      return new NSString(string);
    }
  }

  /** The text of an {@code NSString}; empty for nil. Call inside a pool. */
  // The runtime gives a terminated string.
  @SuppressWarnings("restricted")
  public static String read(long string) {
    long bytes = MessageSend.sendForLong(string, FoundationSelectors.UTF8_STRING);
    return bytes == 0
        ? ""
        : MemorySegment.ofAddress(bytes).reinterpret(Long.MAX_VALUE).getString(0);
  }
}
