package dev.lily.metal.msl;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** The kernels' CPU build, or a GPU's, through its C interface (see {@code lily_kernel_abi.h}). */
@SuppressWarnings("restricted") // native calls are what this class is for
final class CpuKernels {
  /** Thread orders a kernel must not depend on: ascending, descending, and three shuffles. */
  static final int[] ORDERS = {0, 1, 2, 2 | 7 << 16, 2 | 99 << 16};

  static final int OUT_OF_BOUNDS = 3;
  static final int MISALIGNED = 4;
  static final int DIVERGENCE = 5;
  static final int RACE = 6;

  private static final int ISOLATE = 4;
  private static final int MAX_BUFFERS = 31;
  private static final long MESSAGE = 40;
  private static final long TOUCHED = 296;
  private static final MemoryLayout REPORT =
      MemoryLayout.sequenceLayout(TOUCHED / 8 + 4 * MAX_BUFFERS, ValueLayout.JAVA_LONG);

  private final MethodHandle run;
  private final MethodHandle count;
  private final MethodHandle at;
  private final Optional<MethodHandle> describe; // a GPU's library only
  private final int flags;

  private CpuKernels(
      MethodHandle run,
      MethodHandle count,
      MethodHandle at,
      Optional<MethodHandle> describe,
      int flags) {
    this.describe = describe;
    this.run = run;
    this.count = count;
    this.at = at;
    this.flags = flags;
  }

  static CpuKernels load(Path library) {
    SymbolLookup lookup = SymbolLookup.libraryLookup(library.toAbsolutePath(), Arena.global());
    Linker linker = Linker.nativeLinker();
    return new CpuKernels(
        linker.downcallHandle(
            lookup.findOrThrow("lily_run_kernel"),
            FunctionDescriptor.of(
                ValueLayout.JAVA_INT,
                ValueLayout.ADDRESS,
                ValueLayout.ADDRESS,
                ValueLayout.ADDRESS,
                ValueLayout.JAVA_LONG,
                ValueLayout.ADDRESS,
                ValueLayout.ADDRESS,
                ValueLayout.JAVA_INT,
                ValueLayout.ADDRESS)),
        linker.downcallHandle(
            lookup.findOrThrow("lily_kernel_count"), FunctionDescriptor.of(ValueLayout.JAVA_INT)),
        linker.downcallHandle(
            lookup.findOrThrow("lily_kernel_at"),
            FunctionDescriptor.of(ValueLayout.ADDRESS, ValueLayout.JAVA_INT)),
        lookup
            .find("lily_describe")
            .map(f -> linker.downcallHandle(f, FunctionDescriptor.of(ValueLayout.ADDRESS))),
        ISOLATE);
  }

  /** The same kernels, run in another order of threads and threadgroups. */
  CpuKernels inOrder(int order) {
    return new CpuKernels(run, count, at, describe, flags & ISOLATE | order);
  }

  /** The same kernels on the buffers themselves, for dispatches that bind one buffer twice. */
  CpuKernels shared() {
    return new CpuKernels(run, count, at, describe, flags & ~ISOLATE);
  }

  /** The GPU that runs the kernels, or that the processor does. */
  String description() {
    if (describe.isEmpty()) {
      return "kernels on the processor";
    }
    try {
      MemorySegment text = (MemorySegment) describe.get().invokeExact();
      return text.reinterpret(Long.MAX_VALUE).getString(0);
    } catch (Throwable t) {
      throw new IllegalStateException(t);
    }
  }

  /** Names of all kernels. */
  List<String> names() {
    try {
      List<String> names = new ArrayList<>();
      int n = (int) count.invokeExact();
      for (int i = 0; i < n; i++) {
        MemorySegment info = (MemorySegment) at.invokeExact(i);
        MemorySegment name = info.reinterpret(8).get(ValueLayout.ADDRESS, 0);
        names.add(name.reinterpret(Long.MAX_VALUE).getString(0));
      }
      return names;
    } catch (Throwable t) {
      throw new IllegalStateException(t);
    }
  }

  /**
   * @param status 0, or what went wrong
   * @param message empty if nothing did
   */
  record Result(int status, String message) {}

  /** Grid and threadgroup of a dispatch. */
  record Geometry(int[] groups, int[] threads, int threadgroupBytes) {
    static Geometry of(int groups, int threads) {
      return of(groups, 1, 1, threads);
    }

    static Geometry of(int groupsX, int groupsY, int groupsZ, int threads) {
      return new Geometry(new int[] {groupsX, groupsY, groupsZ}, new int[] {threads, 1, 1}, 0);
    }

    Geometry withThreadgroupBytes(int bytes) {
      return new Geometry(groups, threads, bytes);
    }
  }

  /** Runs one dispatch on copies of the buffers that lie far apart; the results are copied back. */
  Result run(String kernel, Geometry geometry, MemorySegment... buffers) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment pointers = arena.allocate(ValueLayout.ADDRESS, MAX_BUFFERS);
      MemorySegment sizes = arena.allocate(ValueLayout.JAVA_LONG, MAX_BUFFERS);
      for (int i = 0; i < buffers.length; i++) {
        pointers.setAtIndex(ValueLayout.ADDRESS, i, buffers[i]);
        sizes.setAtIndex(ValueLayout.JAVA_LONG, i, buffers[i].byteSize());
      }
      MemorySegment report = arena.allocate(REPORT);
      int status =
          (int)
              run.invokeExact(
                  arena.allocateFrom(kernel),
                  pointers,
                  sizes,
                  (long) geometry.threadgroupBytes(),
                  arena.allocateFrom(ValueLayout.JAVA_INT, geometry.groups()),
                  arena.allocateFrom(ValueLayout.JAVA_INT, geometry.threads()),
                  flags,
                  report);
      return new Result(status, report.getString(MESSAGE));
    } catch (Throwable t) {
      throw new IllegalStateException(t);
    }
  }

  /** Runs one dispatch that must succeed. */
  void dispatch(String kernel, Geometry geometry, MemorySegment... buffers) {
    Result result = run(kernel, geometry, buffers);
    if (result.status() != 0) {
      throw new AssertionError(result.message());
    }
  }
}
