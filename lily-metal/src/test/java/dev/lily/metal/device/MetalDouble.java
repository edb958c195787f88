package dev.lily.metal.device;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.lily.metal.msl.KernelLibraries;
import dev.lily.metal.msl.MslToolchain;
import dev.lily.metal.objc.ObjcRuntime;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * The test double of Metal in this JVM; {@code src/test/native/objc/double.h} says what it does.
 * Tests get it as a parameter through {@link MetalDoubleExtension}.
 */
// The double is a native library.
@SuppressWarnings("restricted")
public final class MetalDouble {
  /** Source that the double's compiler takes; its kernels come from the kernel library. */
  public static final String SOURCE = "#include <metal_stdlib>\n";

  private static final List<String> SOURCES =
      List.of(
          "msgsend_x86_64.S",
          "control.c",
          "hazards.c",
          "trace.c",
          "foundation.m",
          "device.m",
          "commands.m");

  private static MetalDouble instance;

  private final Path path;
  private final SymbolLookup library;
  private final MethodHandle set;
  private final MethodHandle get;
  private final MethodHandle fail;
  private final MethodHandle violationAt;
  private final MethodHandle noteAt;
  private final MethodHandle methodTypes;
  private final MethodHandle loadKernels;

  private MetalDouble(Path path) {
    this.path = path;
    library = SymbolLookup.libraryLookup(path, Arena.global());
    set = handle("double_set", FunctionDescriptor.ofVoid(ADDRESS, JAVA_LONG));
    get = handle("double_get", FunctionDescriptor.of(JAVA_LONG, ADDRESS));
    fail =
        handle(
            "double_fail",
            FunctionDescriptor.ofVoid(ADDRESS, JAVA_LONG, ADDRESS, JAVA_LONG, ADDRESS));
    violationAt = handle("double_violation_at", FunctionDescriptor.of(ADDRESS, JAVA_LONG));
    noteAt = handle("double_note_at", FunctionDescriptor.of(ADDRESS, JAVA_LONG));
    methodTypes = handle("double_method_types", FunctionDescriptor.of(ADDRESS, ADDRESS, ADDRESS));
    loadKernels = handle("double_load_kernels", FunctionDescriptor.of(JAVA_INT, ADDRESS));
  }

  private MethodHandle handle(String name, FunctionDescriptor shape) {
    return Linker.nativeLinker().downcallHandle(library.findOrThrow(name), shape);
  }

  /**
   * Builds the double if need be and puts it in the place of the system's libraries.
   *
   * @throws org.opentest4j.TestAbortedException if it can't be built on this machine
   */
  public static synchronized MetalDouble install() {
    if (instance == null) {
      Path path =
          NativeTools.sharedLibrary("libmetaldouble.so", SOURCES, List.of("objc", "pthread", "dl"));
      System.setProperty(ObjcRuntime.LIBRARY_PROPERTY, path.toString());
      if (!ObjcRuntime.isSubstituted()) {
        throw new AssertionError("The runtime was used in this JVM before the double was there");
      }
      instance = new MetalDouble(path);
    }
    return instance;
  }

  /** The library that stands for the system's. */
  public Path path() {
    return path;
  }

  /** Three hand-written kernels: {@code stub_add}, {@code stub_scale}, {@code stub_count}. */
  public void useStubKernels() {
    useKernels(
        NativeTools.sharedLibrary("libstubkernels.so", List.of("stub_kernels.c"), List.of()));
  }

  /**
   * The kernels of the back end, with every access of theirs checked.
   *
   * @return the library they are in
   * @throws org.opentest4j.TestAbortedException if they can't be built on this machine
   */
  public Path useKernels() {
    Path kernels = KernelLibraries.given().orElseGet(() -> toolchain().buildLibrary());
    useKernels(kernels);
    return kernels;
  }

  /**
   * The kernels of the back end without checks of accesses and hazards, which is several times
   * faster: for long runs that ask for numbers only. The setting {@code track} is off until it is
   * set again or the double is {@link #reset}.
   *
   * @throws org.opentest4j.TestAbortedException if they can't be built on this machine
   */
  public void useFastKernels() {
    useKernels(KernelLibraries.given().orElseGet(() -> toolchain().buildFastLibrary()));
    set("track", 0);
  }

  private static MslToolchain toolchain() {
    Optional<MslToolchain> toolchain = MslToolchain.find();
    if (toolchain.isEmpty()) {
      NativeTools.skip("The kernels can't be built here; install the package clang-19");
    }
    return toolchain.orElseThrow();
  }

  /** Takes kernels from a CPU build of them. */
  public void useKernels(Path path) {
    try (Arena arena = Arena.ofConfined()) {
      int result = (int) invoke(loadKernels, arena.allocateFrom(path.toString()));
      if (result != 0) {
        throw new AssertionError("Not a kernel library: " + path);
      }
    }
  }

  /** Forgets violations, counters and armed failures, and restores settings. */
  public void reset() {
    invoke(handle("double_reset", FunctionDescriptor.ofVoid()));
  }

  public void set(String setting, long value) {
    try (Arena arena = Arena.ofConfined()) {
      invoke(set, arena.allocateFrom(setting), value);
    }
  }

  /** A setting or counter. */
  public long get(String name) {
    try (Arena arena = Arena.ofConfined()) {
      return (long) invoke(get, arena.allocateFrom(name));
    }
  }

  /** Lets an event fail once, after so many that succeed. */
  public void fail(String event, long after, String domain, long code, String text) {
    try (Arena arena = Arena.ofConfined()) {
      invoke(
          fail,
          arena.allocateFrom(event),
          after,
          arena.allocateFrom(domain),
          code,
          arena.allocateFrom(text));
    }
  }

  /** Lets the next such event give nil. */
  public void failNext(String event) {
    fail(event, 0, "", 0, "");
  }

  /** Lets the next command buffer fail. */
  public void failRun(long code, String text) {
    fail("run", 0, "MTLCommandBufferErrorDomain", code, text);
  }

  /** What Metal's validation layer would have ended the process for, and hazards. */
  public List<String> violations() {
    return lines(violationAt);
  }

  /** As {@link #violations}, and forgets them. */
  public List<String> takeViolations() {
    List<String> taken = violations();
    invoke(handle("double_clear_violations", FunctionDescriptor.ofVoid()));
    return taken;
  }

  /** Barriers that ordered nothing. */
  public List<String> notes() {
    return lines(noteAt);
  }

  /** The compiler's encoding of a method's types; a leading + asks for a class method. */
  public Optional<String> methodTypes(String className, String selector) {
    try (Arena arena = Arena.ofConfined()) {
      return text(
          (MemorySegment)
              invoke(methodTypes, arena.allocateFrom(className), arena.allocateFrom(selector)));
    }
  }

  /**
   * Writes what command buffers dispatch while they run in {@code body} to a file, as {@code
   * trace.c} says.
   */
  public void trace(Path file, Runnable body) {
    MethodHandle trace = handle("double_trace", FunctionDescriptor.of(JAVA_INT, ADDRESS));
    try (Arena arena = Arena.ofConfined()) {
      if ((int) invoke(trace, arena.allocateFrom(file.toString())) != 0) {
        throw new AssertionError("The trace can't be written to " + file);
      }
      body.run();
      invoke(trace, MemorySegment.NULL);
    }
  }

  private static List<String> lines(MethodHandle at) {
    List<String> lines = new ArrayList<>();
    for (long i = 0; ; i++) {
      Optional<String> line = text((MemorySegment) invoke(at, i));
      if (line.isEmpty()) {
        return lines;
      }
      lines.add(line.get());
    }
  }

  private static Optional<String> text(MemorySegment address) {
    return address.address() == 0
        ? Optional.empty()
        : Optional.of(address.reinterpret(Long.MAX_VALUE).getString(0));
  }

  private static Object invoke(MethodHandle handle, Object... arguments) {
    try {
      return handle.invokeWithArguments(arguments);
    } catch (Throwable t) {
      throw new AssertionError(t);
    }
  }
}
