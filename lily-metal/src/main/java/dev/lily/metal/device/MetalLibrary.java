package dev.lily.metal.device;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.lily.metal.objc.AutoreleasePool;
import dev.lily.metal.objc.MessageSend;
import dev.lily.metal.objc.NSError;
import dev.lily.metal.objc.NSString;
import dev.lily.metal.objc.ObjcObject;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** Kernels compiled from one source. May be closed once its pipelines are made. */
public final class MetalLibrary extends DeviceObject {
  private final long device;
  private final String name;

  MetalLibrary(DeviceObjects owner, long owned, long device, String name) {
    super(owner, owned, "library " + name);
    this.device = device;
    this.name = name;
  }

  /**
   * Compiles a kernel for the device. Any thread, several at once.
   *
   * @throws ShaderCompilationException if it is not in the library, or the compiler refuses it
   */
  public ComputePipeline pipeline(String kernel) {
    try (AutoreleasePool _ = AutoreleasePool.open();
        NSString string = NSString.of(kernel)) {
      long function = MessageSend.sendForLong(id(), MetalSelectors.NEW_FUNCTION, string.id());
      if (function == 0) {
        throw new ShaderCompilationException(
            "Looking up kernel '" + kernel + "': " + name + " has none of this name");
      }
      try {
        return pipeline(kernel, function);
      } finally {
        ObjcObject.release(function);
      }
    }
  }

  private ComputePipeline pipeline(String kernel, long function) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment error = arena.allocate(JAVA_LONG);
      long pipeline =
          MessageSend.sendForLong(device, MetalSelectors.NEW_PIPELINE, function, error.address());
      if (pipeline == 0) {
        throw new ShaderCompilationException(
            "Compiling kernel '"
                + kernel
                + "' of "
                + name
                + " for the device: "
                + NSError.readFrom(error).description());
      }
      return new ComputePipeline(owner(), pipeline, kernel);
    }
  }
}
