package dev.lily.metal.device;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.lily.metal.objc.MessageSend;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * Records dispatches. Pipeline, buffers, bytes and threadgroup memory stay bound from dispatch to
 * dispatch until the encoder ends. Misuse that the GPU would answer with a fault is refused here
 * with {@link IllegalArgumentException} or {@link IndexOutOfBoundsException}. Allocates nothing.
 */
public final class ComputeEncoder {
  /** Buffer indices run from 0 to one less. */
  public static final int NUM_BUFFER_INDICES = 31;

  /** Most bytes of one {@link #setBytes}. */
  public static final int MAX_BYTES = 4096;

  private static final long BARRIER_SCOPE_BUFFERS = 1;
  private static final int INDIRECT_ARGUMENTS_BYTES = 12;

  private final long maxThreadgroupBytes;
  private final MemorySegment groups;
  private final MemorySegment threads;
  private final MemorySegment range;

  private long id;
  private @Nullable ComputePipeline pipeline;

  ComputeEncoder(MetalDevice device) {
    this.maxThreadgroupBytes = device.maxThreadgroupBytes();
    this.groups = device.arena().allocate(MessageSend.THREE_WORDS);
    this.threads = device.arena().allocate(MessageSend.THREE_WORDS);
    this.range = device.arena().allocate(MessageSend.RANGE);
  }

  void open(long encoder) {
    id = encoder;
    pipeline = null;
  }

  boolean isOpen() {
    return id != 0;
  }

  private long id() {
    if (id == 0) {
      throw new IllegalStateException("The encoder has ended");
    }
    return id;
  }

  /** Selects the kernel of the dispatches that follow. */
  public void setPipeline(ComputePipeline kernel) {
    MessageSend.send(id(), MetalSelectors.SET_PIPELINE, kernel.id());
    pipeline = kernel;
  }

  /**
   * Binds a buffer.
   *
   * @param offset bytes from the buffer's start to the argument's first element
   */
  public void setBuffer(int index, MetalBuffer buffer, long offset) {
    requireIndex(index);
    requireOffset(buffer, offset, 1);
    MessageSend.send(id(), MetalSelectors.SET_BUFFER, buffer.id(), offset, index);
  }

  /**
   * Changes the offset of a bound buffer; cheaper than binding it again. The caller vouches that it
   * lies inside the buffer.
   */
  public void setBufferOffset(int index, long offset) {
    requireIndex(index);
    MessageSend.send(id(), MetalSelectors.SET_BUFFER_OFFSET, offset, index);
  }

  /** Binds several buffers in one message. */
  public void setBuffers(BufferBindings bindings) {
    range.setAtIndex(JAVA_LONG, 0, bindings.firstIndex());
    range.setAtIndex(JAVA_LONG, 1, bindings.size());
    MessageSend.sendWithRange(
        id(),
        MetalSelectors.SET_BUFFERS,
        bindings.objects().address(),
        bindings.offsets().address(),
        range);
  }

  /** Binds a small struct by value: {@code length} bytes from {@code offset}, copied at once. */
  public void setBytes(int index, MemorySegment struct, long offset, long length) {
    requireIndex(index);
    if (length < 1 || length > MAX_BYTES) {
      throw new IllegalArgumentException(
          "Binding " + length + " bytes by value: 1 to " + MAX_BYTES + " are allowed");
    }
    if (!struct.isNative() || offset < 0 || offset > struct.byteSize() - length) {
      throw new IllegalArgumentException(
          "Binding bytes "
              + offset
              + " to "
              + (offset + length)
              + ": not native memory of "
              + struct.byteSize()
              + " bytes");
    }
    MessageSend.send(id(), MetalSelectors.SET_BYTES, struct.address() + offset, length, index);
  }

  /** Sizes a block of threadgroup memory; a multiple of 16 bytes. */
  public void setThreadgroupMemory(int index, long byteSize) {
    requireIndex(index);
    if (byteSize < 0 || byteSize % 16 != 0 || byteSize > maxThreadgroupBytes) {
      throw new IllegalArgumentException(
          "Asking for "
              + byteSize
              + " bytes of threadgroup memory: multiples of 16 up to "
              + maxThreadgroupBytes
              + " are allowed");
    }
    MessageSend.send(id(), MetalSelectors.SET_THREADGROUP_MEMORY, byteSize, index);
  }

  /** Runs the kernel on a grid of whole threadgroups. */
  public void dispatch(
      long groupsX, long groupsY, long groupsZ, long threadsX, long threadsY, long threadsZ) {
    requireGrid(groupsX, groupsY, groupsZ);
    setThreads(threadsX, threadsY, threadsZ);
    groups.setAtIndex(JAVA_LONG, 0, groupsX);
    groups.setAtIndex(JAVA_LONG, 1, groupsY);
    groups.setAtIndex(JAVA_LONG, 2, groupsZ);
    MessageSend.send(id(), MetalSelectors.DISPATCH, groups, threads);
  }

  /**
   * Runs the kernel on a grid whose size the GPU reads: three 32-bit counts of threadgroups. An
   * earlier dispatch that writes them needs a barrier like any other.
   */
  public void dispatchIndirect(
      MetalBuffer counts, long offset, long threadsX, long threadsY, long threadsZ) {
    requireOffset(counts, offset, INDIRECT_ARGUMENTS_BYTES);
    if (offset % 4 != 0) {
      throw new IllegalArgumentException("Indirect counts at byte " + offset + ": a multiple of 4");
    }
    setThreads(threadsX, threadsY, threadsZ);
    MessageSend.send(id(), MetalSelectors.DISPATCH_INDIRECT, counts.id(), offset, threads);
  }

  /**
   * Sends all dispatches of a list, as few messages as they need: pipeline and threadgroup memory
   * only where they change, all buffers of a dispatch at once. No barrier goes before the first.
   */
  public void encode(DispatchList list) {
    long encoder = id();
    ComputePipeline last = null;
    int lastBytes = 0;
    for (int i = 0; i < list.size(); i++) {
      ComputePipeline next = list.pipeline(i);
      if (next != last) {
        MessageSend.send(encoder, MetalSelectors.SET_PIPELINE, next.id());
        last = next;
      }
      int bytes = list.threadgroupBytes(i);
      if (bytes != lastBytes) { // it stays reserved for the dispatches that follow
        setThreadgroupMemory(0, bytes);
        lastBytes = bytes;
      }
      range.setAtIndex(JAVA_LONG, 0, 0);
      range.setAtIndex(JAVA_LONG, 1, list.numBindings(i));
      MessageSend.sendWithRange(
          encoder, MetalSelectors.SET_BUFFERS, list.objects(i), list.offsets(i), range);
      if (i > 0 && list.isAfterBarrier(i)) {
        MessageSend.send(encoder, MetalSelectors.MEMORY_BARRIER, BARRIER_SCOPE_BUFFERS);
      }
      threads.setAtIndex(JAVA_LONG, 0, list.threads(i));
      threads.setAtIndex(JAVA_LONG, 1, 1);
      threads.setAtIndex(JAVA_LONG, 2, 1);
      groups.setAtIndex(JAVA_LONG, 0, list.groupsX(i));
      groups.setAtIndex(JAVA_LONG, 1, list.groupsY(i));
      groups.setAtIndex(JAVA_LONG, 2, list.groupsZ(i));
      MessageSend.send(encoder, MetalSelectors.DISPATCH, groups, threads);
    }
    pipeline = last;
  }

  private void setThreads(long threadsX, long threadsY, long threadsZ) {
    if (pipeline == null) {
      throw new IllegalStateException("Dispatching: no pipeline is set");
    }
    requireThreads(pipeline, threadsX, threadsY, threadsZ);
    threads.setAtIndex(JAVA_LONG, 0, threadsX);
    threads.setAtIndex(JAVA_LONG, 1, threadsY);
    threads.setAtIndex(JAVA_LONG, 2, threadsZ);
  }

  static void requireGrid(long groupsX, long groupsY, long groupsZ) {
    if (groupsX < 1 || groupsY < 1 || groupsZ < 1) {
      throw new IllegalArgumentException(
          "Dispatching "
              + groupsX
              + " x "
              + groupsY
              + " x "
              + groupsZ
              + " threadgroups: at least 1");
    }
  }

  static void requireThreads(
      ComputePipeline pipeline, long threadsX, long threadsY, long threadsZ) {
    long total = threadsX * threadsY * threadsZ;
    if (threadsX < 1 || threadsY < 1 || threadsZ < 1 || total > pipeline.maxThreads()) {
      throw new IllegalArgumentException(
          "Dispatching "
              + pipeline.name()
              + " with "
              + threadsX
              + " x "
              + threadsY
              + " x "
              + threadsZ
              + " threads a threadgroup: it runs 1 to "
              + pipeline.maxThreads());
    }
  }

  /** Orders all dispatches before it in this encoder before all after it. */
  public void barrier() {
    MessageSend.send(id(), MetalSelectors.MEMORY_BARRIER, BARRIER_SCOPE_BUFFERS);
  }

  /** Ends the encoder; must come before the command buffer is committed. */
  public void end() {
    MessageSend.send(id(), MetalSelectors.END_ENCODING);
    id = 0;
    pipeline = null;
  }

  static void requireIndex(int index) {
    if (index < 0 || index >= NUM_BUFFER_INDICES) {
      throw new IndexOutOfBoundsException(
          "Binding index " + index + ": 0 to " + (NUM_BUFFER_INDICES - 1) + " are allowed");
    }
  }

  static void requireOffset(MetalBuffer buffer, long offset, long needed) {
    if (offset < 0 || offset > buffer.byteSize() - needed) {
      throw new IndexOutOfBoundsException("Binding byte " + offset + " of a " + buffer);
    }
  }
}
