package dev.lily.metal.device;

import dev.lily.metal.objc.MessageSend;

/** A compiled kernel, ready to dispatch. */
public final class ComputePipeline extends DeviceObject {
  private final String name;
  private final long maxThreads;
  private final long simdWidth;
  private final long staticThreadgroupBytes;

  ComputePipeline(DeviceObjects owner, long owned, String name) {
    super(owner, owned, "kernel " + name);
    this.name = name;
    this.maxThreads =
        MessageSend.sendForLong(owned, MetalSelectors.MAX_TOTAL_THREADS_PER_THREADGROUP);
    this.simdWidth = MessageSend.sendForLong(owned, MetalSelectors.THREAD_EXECUTION_WIDTH);
    this.staticThreadgroupBytes =
        MessageSend.sendForLong(owned, MetalSelectors.STATIC_THREADGROUP_MEMORY_LENGTH);
  }

  /** The kernel's name in its source. */
  public String name() {
    return name;
  }

  /** Most threads of a threadgroup; fewer than 1,024 for a kernel that needs many registers. */
  public long maxThreads() {
    return maxThreads;
  }

  /** Threads of a simdgroup: 32. */
  public long simdWidth() {
    return simdWidth;
  }

  /** Threadgroup memory that the kernel itself declares. */
  public long staticThreadgroupBytes() {
    return staticThreadgroupBytes;
  }
}
