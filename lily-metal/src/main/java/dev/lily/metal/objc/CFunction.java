package dev.lily.metal.objc;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * A C function of a library, called in one of a few shapes. It may be absent: making one never
 * fails, calling an absent one throws {@link ObjcException}. Keep it in a static final field; a
 * record's fields are constants to the JIT. Any thread.
 *
 * @param name the symbol
 * @param address {@link MemorySegment#NULL} if absent
 */
public record CFunction(String name, MemorySegment address) {
  private static final MethodHandle LONG = handle(FunctionDescriptor.of(JAVA_LONG));
  private static final MethodHandle LONG_LONG = handle(FunctionDescriptor.of(JAVA_LONG, JAVA_LONG));
  private static final MethodHandle VOID_LONG = handle(FunctionDescriptor.ofVoid(JAVA_LONG));
  private static final MethodHandle INT = handle(FunctionDescriptor.of(JAVA_INT));

  /** The function, or an absent one. */
  public static CFunction in(NativeLibrary library, String name) {
    return new CFunction(name, library.find(name));
  }

  /** The function of the C library, or an absent one. */
  public static CFunction inSystem(String name) {
    return new CFunction(
        name, Linker.nativeLinker().defaultLookup().find(name).orElse(MemorySegment.NULL));
  }

  /** A handle of this shape for any function; the address comes first. */
  // The shapes are those of functions and methods named in this module only.
  @SuppressWarnings("restricted")
  static MethodHandle handle(FunctionDescriptor shape) {
    return Linker.nativeLinker().downcallHandle(shape);
  }

  /** A handle for messages of this shape: receiver and selector come before the arguments. */
  static MethodHandle messageHandle(MemoryLayout result, MemoryLayout... arguments) {
    return handle(FunctionDescriptor.of(result, withReceiver(arguments)));
  }

  /** As {@link #messageHandle}, without a result. */
  static MethodHandle voidMessageHandle(MemoryLayout... arguments) {
    return handle(FunctionDescriptor.ofVoid(withReceiver(arguments)));
  }

  private static MemoryLayout[] withReceiver(MemoryLayout... arguments) {
    MemoryLayout[] all = new MemoryLayout[arguments.length + 2];
    all[0] = JAVA_LONG;
    all[1] = JAVA_LONG;
    System.arraycopy(arguments, 0, all, 2, arguments.length);
    return all;
  }

  public boolean isPresent() {
    return address.address() != 0;
  }

  /** {@code pointer f(void)}. */
  public long callForLong() {
    requirePresent();
    try {
      return (long) LONG.invokeExact(address);
    } catch (Throwable t) {
      throw ObjcException.unexpected(t);
    }
  }

  /** {@code pointer f(pointer)}. */
  public long callForLong(long argument) {
    requirePresent();
    try {
      return (long) LONG_LONG.invokeExact(address, argument);
    } catch (Throwable t) {
      throw ObjcException.unexpected(t);
    }
  }

  /** {@code pointer f(const char *)}: the text lives during the call only. */
  public long callForLong(String argument) {
    try (Arena arena = Arena.ofConfined()) {
      return callForLong(arena.allocateFrom(argument).address());
    }
  }

  /** {@code void f(pointer)}. */
  public void call(long argument) {
    requirePresent();
    try {
      VOID_LONG.invokeExact(address, argument);
    } catch (Throwable t) {
      throw ObjcException.unexpected(t);
    }
  }

  /** {@code int f(void)}. */
  public int callForInt() {
    requirePresent();
    try {
      return (int) INT.invokeExact(address);
    } catch (Throwable t) {
      throw ObjcException.unexpected(t);
    }
  }

  private void requirePresent() {
    if (!isPresent()) {
      String reason = ObjcRuntime.unavailableReason();
      throw new ObjcException(
          "Calling " + name + ": " + (reason != null ? reason : "no loaded library has it"));
    }
  }
}
