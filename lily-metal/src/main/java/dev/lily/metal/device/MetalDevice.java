package dev.lily.metal.device;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.lily.metal.objc.AutoreleasePool;
import dev.lily.metal.objc.MessageSend;
import dev.lily.metal.objc.NSArray;
import dev.lily.metal.objc.NSError;
import dev.lily.metal.objc.NSString;
import dev.lily.metal.objc.ObjcObject;
import dev.lily.metal.objc.ObjcRuntime;
import dev.lily.metal.objc.OperatingSystem;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Optional;

/**
 * The GPU. Makes every other object of this package and owns it: {@link #close} waits for work in
 * flight, then releases what is still open, buffers before queues, and itself last. Memory that a
 * buffer wraps must outlive the device, or the buffer's closing and the completion of all command
 * buffers begun before it.
 */
public final class MetalDevice implements AutoCloseable {
  /** First macOS with residency sets and the compiler's math modes. */
  public static final int MIN_MACOS = 15;

  private static final long MEBIBYTE = 1 << 20;

  private final DeviceHandle device;
  private final DeviceObjects objects = new DeviceObjects();
  private final Arena arena = Arena.ofShared();
  private final String name;
  private final long pageBytes = OperatingSystem.pageBytes();
  private final long maxThreadgroupBytes;

  /** The device's own reference; the device is the owner and belongs to nobody. */
  private static final class DeviceHandle extends ObjcObject {
    DeviceHandle(long owned) {
      super(owned);
    }
  }

  private MetalDevice(DeviceHandle device) {
    this.device = device;
    try (AutoreleasePool _ = AutoreleasePool.open()) {
      this.name = NSString.read(MessageSend.sendForLong(device.id(), MetalSelectors.DEVICE_NAME));
    }
    this.maxThreadgroupBytes =
        MessageSend.sendForLong(device.id(), MetalSelectors.MAX_THREADGROUP_MEMORY_LENGTH);
  }

  /**
   * Opens the system's GPU.
   *
   * @throws DeviceUnavailableException if there is none that Lily can use: macOS {@value
   *     #MIN_MACOS}, unified memory and family {@link GpuFamily#APPLE7} are needed
   */
  public static MetalDevice open() {
    String reason = MetalFramework.unavailableReason();
    if (reason != null) {
      throw new DeviceUnavailableException("Opening the GPU: " + reason);
    }
    if (!OperatingSystem.isAtLeast(MIN_MACOS, 0)) {
      throw new DeviceUnavailableException(
          "Opening the GPU: macOS is older than "
              + MIN_MACOS
              + ". Update it, or use the CPU back end.");
    }
    DeviceHandle handle = new DeviceHandle(findDevice());
    try {
      MetalDevice device = new MetalDevice(handle);
      device.requireUsable();
      return device;
    } catch (RuntimeException e) {
      handle.close();
      throw e;
    }
  }

  /** The default device, or the first of all: command-line processes may have no default one. */
  private static long findDevice() {
    try (AutoreleasePool _ = AutoreleasePool.open()) {
      long device = MetalFramework.CREATE_SYSTEM_DEFAULT_DEVICE.callForLong();
      if (device != 0) {
        return device;
      }
      long all = MetalFramework.COPY_ALL_DEVICES.callForLong();
      if (all != 0) {
        try {
          if (NSArray.count(all) > 0) {
            return ObjcObject.retain(NSArray.get(all, 0));
          }
        } finally {
          ObjcObject.release(all);
        }
      }
    }
    throw new DeviceUnavailableException(
        "Opening the GPU: this process sees none. Sandboxes, virtual machines and daemons without"
            + " a login session often have none; use the CPU back end there.");
  }

  private void requireUsable() {
    if (!supports(GpuFamily.APPLE7)) {
      throw new DeviceUnavailableException(
          "Opening the GPU '"
              + name
              + "': Apple silicon (M1 or newer) is needed. Use the CPU back end.");
    }
    if (!MessageSend.sendForBoolean(device.id(), MetalSelectors.HAS_UNIFIED_MEMORY)) {
      throw new DeviceUnavailableException(
          "Opening the GPU '"
              + name
              + "': its memory is not shared with the processor."
              + " Use the CPU back end.");
    }
  }

  /** For example {@code Apple M4 Max}. */
  public String name() {
    return name;
  }

  /** For example {@code applegpu_g16s}; the last letter is the class of chip. */
  public String architecture() {
    try (AutoreleasePool _ = AutoreleasePool.open()) {
      long architecture = MessageSend.sendForLong(device.id(), MetalSelectors.ARCHITECTURE);
      return NSString.read(MessageSend.sendForLong(architecture, MetalSelectors.ARCHITECTURE_NAME));
    }
  }

  public boolean supports(GpuFamily family) {
    return MessageSend.sendForBoolean(device.id(), MetalSelectors.SUPPORTS_FAMILY, family.value());
  }

  /** Bytes that may be in use at once without slowing down; follows the wired-limit sysctl. */
  public long recommendedMaxWorkingSetBytes() {
    return MessageSend.sendForLong(device.id(), MetalSelectors.RECOMMENDED_MAX_WORKING_SET_SIZE);
  }

  /** Bytes of all buffers of this process. */
  public long currentAllocatedBytes() {
    return MessageSend.sendForLong(device.id(), MetalSelectors.CURRENT_ALLOCATED_SIZE);
  }

  /** Most bytes of one buffer. */
  public long maxBufferBytes() {
    return MessageSend.sendForLong(device.id(), MetalSelectors.MAX_BUFFER_LENGTH);
  }

  /** Threadgroup memory of one threadgroup. */
  public long maxThreadgroupBytes() {
    return maxThreadgroupBytes;
  }

  /** What memory must be aligned to for {@link #wrap}. */
  public long pageBytes() {
    return pageBytes;
  }

  /**
   * Allocates a buffer. Its contents are undefined.
   *
   * @throws DeviceMemoryException if it is too large or memory is short
   */
  public MetalBuffer buffer(long byteSize, StorageMode storage) {
    requireBufferSize(byteSize);
    try (AutoreleasePool _ = AutoreleasePool.open()) {
      long buffer =
          MessageSend.sendForLong(
              device.id(), MetalSelectors.NEW_BUFFER, byteSize, storage.options());
      if (buffer == 0) {
        throw outOfMemory("Allocating a buffer of " + byteSize + " bytes");
      }
      return MetalBuffer.allocated(objects, buffer, byteSize, storage);
    }
  }

  /**
   * Makes a buffer over existing memory, such as a mapped file, without copying.
   *
   * @param memory native, aligned to {@link #pageBytes}. The last page counts whole: a mapping is
   *     always made of whole pages
   * @throws DeviceMemoryException if Metal refuses the memory
   */
  public MetalBuffer wrap(MemorySegment memory) {
    if (!memory.isNative() || memory.address() % pageBytes != 0) {
      throw new IllegalArgumentException(
          "Wrapping memory without a copy: it must be native and start at a multiple of "
              + pageBytes
              + " bytes (a page)");
    }
    long wholePages = (memory.byteSize() + pageBytes - 1) / pageBytes * pageBytes;
    requireBufferSize(wholePages);
    try (AutoreleasePool _ = AutoreleasePool.open()) {
      long buffer =
          MessageSend.sendForLong(
              device.id(),
              MetalSelectors.NEW_BUFFER_NO_COPY,
              memory.address(),
              wholePages,
              StorageMode.SHARED.options(),
              0);
      if (buffer == 0) {
        throw outOfMemory("Wrapping " + memory.byteSize() + " bytes of memory without a copy");
      }
      return MetalBuffer.wrapping(objects, buffer, memory);
    }
  }

  private void requireBufferSize(long byteSize) {
    if (byteSize < 1) {
      throw new IllegalArgumentException("A buffer of " + byteSize + " bytes: at least 1");
    }
    if (byteSize > maxBufferBytes()) {
      throw new DeviceMemoryException(
          "Making a buffer of "
              + byteSize
              + " bytes: this GPU takes at most "
              + maxBufferBytes()
              + " in one buffer");
    }
  }

  private DeviceMemoryException outOfMemory(String doing) {
    return new DeviceMemoryException(
        doing
            + ": Metal gave none; "
            + currentAllocatedBytes() / MEBIBYTE
            + " MiB are in use, "
            + recommendedMaxWorkingSetBytes() / MEBIBYTE
            + " MiB are recommended at most. Use a shorter context, or raise the limit:"
            + " sudo sysctl iogpu.wired_limit_mb=N");
  }

  /**
   * Compiles source. Any thread, several at once.
   *
   * @param name of the source, for messages
   * @throws ShaderCompilationException with the compiler's output if it is refused
   */
  public MetalLibrary compile(
      String name, String source, LanguageVersion version, MathMode mathMode) {
    try (AutoreleasePool _ = AutoreleasePool.open();
        Arena callArena = Arena.ofConfined();
        NSString string = NSString.of(source);
        ObjcObject options = ObjcObject.newInstance("MTLCompileOptions")) {
      MessageSend.send(options.id(), MetalSelectors.SET_LANGUAGE_VERSION, version.value());
      MessageSend.send(options.id(), MetalSelectors.SET_MATH_MODE, mathMode.value());
      MemorySegment error = callArena.allocate(JAVA_LONG);
      long library =
          MessageSend.sendForLong(
              device.id(), MetalSelectors.NEW_LIBRARY, string.id(), options.id(), error.address());
      if (library == 0) {
        throw new ShaderCompilationException(
            "Compiling " + name + " as " + version + ": " + NSError.readFrom(error).description());
      }
      return new MetalLibrary(objects, library, device.id(), name);
    }
  }

  /**
   * Makes a queue.
   *
   * @param maxCommandBuffers most command buffers begun and not completed at one time
   */
  public CommandQueue queue(int maxCommandBuffers) {
    try (AutoreleasePool _ = AutoreleasePool.open()) {
      long queue =
          MessageSend.sendForLong(device.id(), MetalSelectors.NEW_COMMAND_QUEUE, maxCommandBuffers);
      if (queue == 0) {
        throw new DeviceUnavailableException(
            "Making a command queue: the GPU '" + name + "' gave none");
      }
      return new CommandQueue(objects, queue, this, maxCommandBuffers);
    }
  }

  /**
   * Makes an empty residency set; empty if the system has none (before macOS 15).
   *
   * @param capacity buffers it is expected to hold
   * @throws DeviceUnavailableException if Metal gives none
   */
  public Optional<ResidencySet> residencySet(int capacity) {
    if (!ObjcObject.respondsTo(device.id(), MetalSelectors.NEW_RESIDENCY_SET)
        || ObjcRuntime.findClass("MTLResidencySetDescriptor") == 0) {
      return Optional.empty();
    }
    try (AutoreleasePool _ = AutoreleasePool.open();
        Arena callArena = Arena.ofConfined();
        ObjcObject descriptor = ObjcObject.newInstance("MTLResidencySetDescriptor")) {
      MessageSend.send(descriptor.id(), MetalSelectors.SET_INITIAL_CAPACITY, capacity);
      MemorySegment error = callArena.allocate(JAVA_LONG);
      long set =
          MessageSend.sendForLong(
              device.id(), MetalSelectors.NEW_RESIDENCY_SET, descriptor.id(), error.address());
      if (set == 0) {
        throw new DeviceUnavailableException(
            "Making a residency set: " + NSError.readFrom(error).description());
      }
      return Optional.of(new ResidencySet(objects, set));
    }
  }

  /** For native memory that lives as long as the device. */
  Arena arena() {
    return arena;
  }

  @Override
  public void close() {
    if (device.isClosed()) {
      return;
    }
    objects.closeCommandBuffers(); // outside a pool of ours: a recording has one of its own
    try (AutoreleasePool _ = AutoreleasePool.open()) {
      objects.close();
      device.close();
    }
    arena.close();
  }

  @Override
  public String toString() {
    return name;
  }
}
