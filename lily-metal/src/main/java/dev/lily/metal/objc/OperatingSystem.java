package dev.lily.metal.objc;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** What the system says of itself. */
public final class OperatingSystem {
  private static final CFunction GET_PAGE_SIZE = CFunction.inSystem("getpagesize");

  private OperatingSystem() {}

  /** Whether macOS is this version or newer, as the system itself counts. */
  public static boolean isAtLeast(int major, int minor) {
    try (AutoreleasePool _ = AutoreleasePool.open();
        Arena arena = Arena.ofConfined()) {
      MemorySegment version = arena.allocate(MessageSend.THREE_WORDS);
      version.setAtIndex(JAVA_LONG, 0, major);
      version.setAtIndex(JAVA_LONG, 1, minor);
      long info =
          MessageSend.sendForLong(
              ObjcRuntime.requireClass("NSProcessInfo"), FoundationSelectors.PROCESS_INFO);
      return MessageSend.sendForBoolean(
          info, FoundationSelectors.IS_OPERATING_SYSTEM_AT_LEAST_VERSION, version);
    }
  }

  /** Bytes of a memory page: 16,384 on Apple silicon. */
  public static long pageBytes() {
    return GET_PAGE_SIZE.callForInt();
  }
}
