package dev.lily.metal.objc;

import static java.lang.foreign.ValueLayout.JAVA_BOOLEAN;
import static java.lang.foreign.ValueLayout.JAVA_DOUBLE;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * Sends messages: one handle per signature, each with the method's own C type, because {@code
 * objc_msgSend} must never be called as a variadic function (on arm64 macOS variadic arguments
 * travel elsewhere). A message to 0 returns 0, so check every object that is returned. Allocates
 * nothing. An Objective-C exception ends the process.
 */
public final class MessageSend {
  /** A struct of three words passed by value, such as {@code MTLSize}. */
  public static final MemoryLayout THREE_WORDS =
      MemoryLayout.structLayout(JAVA_LONG, JAVA_LONG, JAVA_LONG);

  /** {@code NSRange}: location and length. */
  public static final MemoryLayout RANGE = MemoryLayout.structLayout(JAVA_LONG, JAVA_LONG);

  private static final MemorySegment TARGET = ObjcRuntime.library().find("objc_msgSend");

  private static final MethodHandle V = CFunction.voidMessageHandle();
  private static final MethodHandle V_L = CFunction.voidMessageHandle(JAVA_LONG);
  private static final MethodHandle V_LL = CFunction.voidMessageHandle(JAVA_LONG, JAVA_LONG);
  private static final MethodHandle V_LLL =
      CFunction.voidMessageHandle(JAVA_LONG, JAVA_LONG, JAVA_LONG);
  private static final MethodHandle V_SS = CFunction.voidMessageHandle(THREE_WORDS, THREE_WORDS);
  private static final MethodHandle V_LLS =
      CFunction.voidMessageHandle(JAVA_LONG, JAVA_LONG, THREE_WORDS);
  private static final MethodHandle V_LLR =
      CFunction.voidMessageHandle(JAVA_LONG, JAVA_LONG, RANGE);
  private static final MethodHandle L = CFunction.messageHandle(JAVA_LONG);
  private static final MethodHandle L_L = CFunction.messageHandle(JAVA_LONG, JAVA_LONG);
  private static final MethodHandle L_LL = CFunction.messageHandle(JAVA_LONG, JAVA_LONG, JAVA_LONG);
  private static final MethodHandle L_LLL =
      CFunction.messageHandle(JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);
  private static final MethodHandle L_LLLL =
      CFunction.messageHandle(JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);
  private static final MethodHandle Z = CFunction.messageHandle(JAVA_BOOLEAN);
  private static final MethodHandle Z_L = CFunction.messageHandle(JAVA_BOOLEAN, JAVA_LONG);
  private static final MethodHandle Z_S = CFunction.messageHandle(JAVA_BOOLEAN, THREE_WORDS);
  private static final MethodHandle D = CFunction.messageHandle(JAVA_DOUBLE);

  private MessageSend() {}

  /** No result, no argument. */
  public static void send(long receiver, Selector selector) {
    assert selector.signature() == Signature.V : selector;
    try {
      V.invokeExact(TARGET, receiver, selector.address());
    } catch (Throwable t) {
      throw ObjcException.unexpected(t);
    }
  }

  /** No result, one word. */
  public static void send(long receiver, Selector selector, long first) {
    assert selector.signature() == Signature.V_L : selector;
    try {
      V_L.invokeExact(TARGET, receiver, selector.address(), first);
    } catch (Throwable t) {
      throw ObjcException.unexpected(t);
    }
  }

  /** No result, two words. */
  public static void send(long receiver, Selector selector, long first, long second) {
    assert selector.signature() == Signature.V_LL : selector;
    try {
      V_LL.invokeExact(TARGET, receiver, selector.address(), first, second);
    } catch (Throwable t) {
      throw ObjcException.unexpected(t);
    }
  }

  /** No result, three words. */
  public static void send(long receiver, Selector selector, long first, long second, long third) {
    assert selector.signature() == Signature.V_LLL : selector;
    try {
      V_LLL.invokeExact(TARGET, receiver, selector.address(), first, second, third);
    } catch (Throwable t) {
      throw ObjcException.unexpected(t);
    }
  }

  /** No result, two structs of {@link #THREE_WORDS}, copied at the call. */
  public static void send(
      long receiver, Selector selector, MemorySegment first, MemorySegment second) {
    assert selector.signature() == Signature.V_SS : selector;
    try {
      V_SS.invokeExact(TARGET, receiver, selector.address(), first, second);
    } catch (Throwable t) {
      throw ObjcException.unexpected(t);
    }
  }

  /** No result, two words and a struct of {@link #THREE_WORDS}, copied at the call. */
  public static void send(
      long receiver, Selector selector, long first, long second, MemorySegment third) {
    assert selector.signature() == Signature.V_LLS : selector;
    try {
      V_LLS.invokeExact(TARGET, receiver, selector.address(), first, second, third);
    } catch (Throwable t) {
      throw ObjcException.unexpected(t);
    }
  }

  /** No result, two words and a {@link #RANGE}, copied at the call. */
  public static void sendWithRange(
      long receiver, Selector selector, long first, long second, MemorySegment range) {
    assert selector.signature() == Signature.V_LLR : selector;
    try {
      V_LLR.invokeExact(TARGET, receiver, selector.address(), first, second, range);
    } catch (Throwable t) {
      throw ObjcException.unexpected(t);
    }
  }

  /** A word or object for no argument. */
  public static long sendForLong(long receiver, Selector selector) {
    assert selector.signature() == Signature.L : selector;
    try {
      return (long) L.invokeExact(TARGET, receiver, selector.address());
    } catch (Throwable t) {
      throw ObjcException.unexpected(t);
    }
  }

  /** A word or object for one word. */
  public static long sendForLong(long receiver, Selector selector, long first) {
    assert selector.signature() == Signature.L_L : selector;
    try {
      return (long) L_L.invokeExact(TARGET, receiver, selector.address(), first);
    } catch (Throwable t) {
      throw ObjcException.unexpected(t);
    }
  }

  /** A word or object for two words. */
  public static long sendForLong(long receiver, Selector selector, long first, long second) {
    assert selector.signature() == Signature.L_LL : selector;
    try {
      return (long) L_LL.invokeExact(TARGET, receiver, selector.address(), first, second);
    } catch (Throwable t) {
      throw ObjcException.unexpected(t);
    }
  }

  /** A word or object for three words. */
  public static long sendForLong(
      long receiver, Selector selector, long first, long second, long third) {
    assert selector.signature() == Signature.L_LLL : selector;
    try {
      return (long) L_LLL.invokeExact(TARGET, receiver, selector.address(), first, second, third);
    } catch (Throwable t) {
      throw ObjcException.unexpected(t);
    }
  }

  /** A word or object for four words. */
  public static long sendForLong(
      long receiver, Selector selector, long first, long second, long third, long fourth) {
    assert selector.signature() == Signature.L_LLLL : selector;
    try {
      return (long)
          L_LLLL.invokeExact(TARGET, receiver, selector.address(), first, second, third, fourth);
    } catch (Throwable t) {
      throw ObjcException.unexpected(t);
    }
  }

  /** A BOOL for no argument. */
  public static boolean sendForBoolean(long receiver, Selector selector) {
    assert selector.signature() == Signature.Z : selector;
    try {
      return (boolean) Z.invokeExact(TARGET, receiver, selector.address());
    } catch (Throwable t) {
      throw ObjcException.unexpected(t);
    }
  }

  /** A BOOL for one word. */
  public static boolean sendForBoolean(long receiver, Selector selector, long first) {
    assert selector.signature() == Signature.Z_L : selector;
    try {
      return (boolean) Z_L.invokeExact(TARGET, receiver, selector.address(), first);
    } catch (Throwable t) {
      throw ObjcException.unexpected(t);
    }
  }

  /** A BOOL for a struct of {@link #THREE_WORDS}, copied at the call. */
  public static boolean sendForBoolean(long receiver, Selector selector, MemorySegment first) {
    assert selector.signature() == Signature.Z_S : selector;
    try {
      return (boolean) Z_S.invokeExact(TARGET, receiver, selector.address(), first);
    } catch (Throwable t) {
      throw ObjcException.unexpected(t);
    }
  }

  /** A double for no argument. */
  public static double sendForDouble(long receiver, Selector selector) {
    assert selector.signature() == Signature.D : selector;
    try {
      return (double) D.invokeExact(TARGET, receiver, selector.address());
    } catch (Throwable t) {
      throw ObjcException.unexpected(t);
    }
  }
}
