package dev.lily.metal.device;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Dispatches written down once, to be sent to an encoder as often as wanted: {@link #begin}, a
 * {@link #bind} for each binding index from 0 on, {@link #dispatch}. What the GPU would answer with
 * a fault is refused here, once, so that {@link ComputeEncoder#encode} only sends messages. Buffers
 * and pipelines must be open whenever it does. Allocates only to grow.
 */
public final class DispatchList implements AutoCloseable {
  private static final int FIRST_DISPATCHES = 64;
  private static final int FIRST_BINDINGS = 512;

  private Bindings bindings = new Bindings(FIRST_BINDINGS);
  private int numBindings;

  private @Nullable ComputePipeline[] pipelines = new ComputePipeline[FIRST_DISPATCHES];
  private int[] firstBinding = new int[FIRST_DISPATCHES + 1];
  private long[] groupsX = new long[FIRST_DISPATCHES];
  private long[] groupsY = new long[FIRST_DISPATCHES];
  private long[] groupsZ = new long[FIRST_DISPATCHES];
  private int[] threads = new int[FIRST_DISPATCHES];
  private int[] threadgroupBytes = new int[FIRST_DISPATCHES];
  private boolean[] barrier = new boolean[FIRST_DISPATCHES];
  private int size;

  /** Objects and offsets in memory that Metal reads. */
  private static final class Bindings {
    private final Arena arena = Arena.ofShared();
    private final long capacity;
    private final MemorySegment objects;
    private final MemorySegment offsets;

    Bindings(long capacity) {
      this.capacity = capacity;
      objects = arena.allocate(JAVA_LONG, capacity);
      offsets = arena.allocate(JAVA_LONG, capacity);
    }

    void close() {
      if (arena.scope().isAlive()) {
        arena.close();
      }
    }
  }

  /** Forgets everything. */
  public void clear() {
    Arrays.fill(pipelines, 0, size, null);
    size = 0;
    numBindings = 0;
  }

  /** Dispatches written down. */
  public int size() {
    return size;
  }

  /** Begins a dispatch; one that was not finished is forgotten. */
  public void begin(ComputePipeline pipeline) {
    if (size == threads.length) {
      growDispatches();
    }
    pipelines[size] = pipeline;
    numBindings = firstBinding[size];
  }

  /** Binds the next index. */
  public void bind(MetalBuffer buffer, long offset) {
    ComputeEncoder.requireIndex(numBindings - firstBinding[size]);
    ComputeEncoder.requireOffset(buffer, offset, 1);
    if (numBindings == bindings.capacity) {
      growBindings();
    }
    bindings.objects.setAtIndex(JAVA_LONG, numBindings, buffer.id());
    bindings.offsets.setAtIndex(JAVA_LONG, numBindings, offset);
    numBindings++;
  }

  /**
   * Ends the dispatch.
   *
   * @param numThreads of a threadgroup
   * @param bytes of threadgroup memory 0, a multiple of 16
   * @param afterBarrier whether all dispatches before it must have ended
   * @return its number
   */
  public int dispatch(long x, long y, long z, int numThreads, int bytes, boolean afterBarrier) {
    ComputePipeline pipeline = Objects.requireNonNull(pipelines[size], "no dispatch was begun");
    ComputeEncoder.requireGrid(x, y, z);
    ComputeEncoder.requireThreads(pipeline, numThreads, 1, 1);
    if (bytes < 0 || bytes % 16 != 0) {
      throw new IllegalArgumentException(
          "Dispatching " + pipeline.name() + " with " + bytes + " bytes: a multiple of 16");
    }
    groupsX[size] = x;
    groupsY[size] = y;
    groupsZ[size] = z;
    threads[size] = numThreads;
    threadgroupBytes[size] = bytes;
    barrier[size] = afterBarrier;
    firstBinding[size + 1] = numBindings;
    return size++;
  }

  /** Changes how many threadgroups a dispatch has in x. */
  public void setGroups(int dispatch, long x) {
    Objects.checkIndex(dispatch, size);
    ComputeEncoder.requireGrid(x, groupsY[dispatch], groupsZ[dispatch]);
    groupsX[dispatch] = x;
  }

  private void growDispatches() {
    int capacity = 2 * threads.length;
    pipelines = Arrays.copyOf(pipelines, capacity);
    firstBinding = Arrays.copyOf(firstBinding, capacity + 1);
    groupsX = Arrays.copyOf(groupsX, capacity);
    groupsY = Arrays.copyOf(groupsY, capacity);
    groupsZ = Arrays.copyOf(groupsZ, capacity);
    threads = Arrays.copyOf(threads, capacity);
    threadgroupBytes = Arrays.copyOf(threadgroupBytes, capacity);
    barrier = Arrays.copyOf(barrier, capacity);
  }

  private void growBindings() {
    Bindings larger = new Bindings(2 * bindings.capacity);
    larger.objects.copyFrom(bindings.objects);
    larger.offsets.copyFrom(bindings.offsets);
    bindings.close();
    bindings = larger;
  }

  ComputePipeline pipeline(int dispatch) {
    return Objects.requireNonNull(pipelines[dispatch]);
  }

  int numBindings(int dispatch) {
    return firstBinding[dispatch + 1] - firstBinding[dispatch];
  }

  /** Address of the objects that a dispatch binds. */
  long objects(int dispatch) {
    return bindings.objects.address() + (long) firstBinding[dispatch] * Long.BYTES;
  }

  /** Address of their offsets. */
  long offsets(int dispatch) {
    return bindings.offsets.address() + (long) firstBinding[dispatch] * Long.BYTES;
  }

  long groupsX(int dispatch) {
    return groupsX[dispatch];
  }

  long groupsY(int dispatch) {
    return groupsY[dispatch];
  }

  long groupsZ(int dispatch) {
    return groupsZ[dispatch];
  }

  int threads(int dispatch) {
    return threads[dispatch];
  }

  int threadgroupBytes(int dispatch) {
    return threadgroupBytes[dispatch];
  }

  boolean isAfterBarrier(int dispatch) {
    return barrier[dispatch];
  }

  @Override
  public void close() {
    clear();
    bindings.close();
  }
}
