package dev.lily.metal.objc;

import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * The process's Objective-C runtime, loaded when this class is first used. Any thread.
 *
 * <p>The system property {@value #LIBRARY_PROPERTY} names one library that stands for the runtime,
 * Foundation and all frameworks. The tests set it to a double, which lets everything above run on
 * machines that are not Macs.
 */
public final class ObjcRuntime {
  /** Path of a library to use instead of the system's. Read once. */
  public static final String LIBRARY_PROPERTY = "lily.metal.library";

  private static final String SUBSTITUTE = System.getProperty(LIBRARY_PROPERTY, "");
  private static final NativeLibrary LIBRARY = loadRuntime();
  private static final NativeLibrary FOUNDATION = loadFoundation();

  private static final CFunction GET_CLASS = CFunction.in(LIBRARY, "objc_getClass");
  private static final CFunction REGISTER_NAME = CFunction.in(LIBRARY, "sel_registerName");

  private ObjcRuntime() {}

  private static NativeLibrary loadRuntime() {
    if (!SUBSTITUTE.isEmpty()) {
      return NativeLibrary.load(SUBSTITUTE);
    }
    String osName = System.getProperty("os.name", "");
    if (!osName.toLowerCase(Locale.ROOT).startsWith("mac")) {
      return NativeLibrary.unavailable(
          "the Objective-C runtime is part of macOS; this is " + osName);
    }
    return NativeLibrary.load("/usr/lib/libobjc.A.dylib");
  }

  private static NativeLibrary loadFoundation() {
    return LIBRARY.unavailableReason() == null ? NativeLibrary.framework("Foundation") : LIBRARY;
  }

  /** True if {@link #LIBRARY_PROPERTY} replaces the system's libraries. */
  public static boolean isSubstituted() {
    return !SUBSTITUTE.isEmpty();
  }

  /** Why no message can be sent in this process; null if the runtime is there. */
  public static @Nullable String unavailableReason() {
    String reason = LIBRARY.unavailableReason();
    return reason != null ? reason : FOUNDATION.unavailableReason();
  }

  /** The library of the runtime itself. */
  public static NativeLibrary library() {
    return LIBRARY;
  }

  /**
   * The class of this name, or 0: newer classes are absent on older systems.
   *
   * @throws ObjcException if there is no runtime
   */
  public static long findClass(String name) {
    return GET_CLASS.callForLong(name);
  }

  /**
   * The class of this name.
   *
   * @throws ObjcException if it does not exist
   */
  public static long requireClass(String name) {
    long found = findClass(name);
    if (found == 0) {
      throw new ObjcException("Class " + name + " does not exist on this system");
    }
    return found;
  }

  /** The selector's address; 0 without a runtime, so that constants can be made anywhere. */
  static long registerSelector(String name) {
    return unavailableReason() == null ? REGISTER_NAME.callForLong(name) : 0;
  }
}
