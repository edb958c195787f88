package dev.lily.metal.device;

import dev.lily.metal.objc.CFunction;
import dev.lily.metal.objc.NativeLibrary;
import dev.lily.metal.objc.ObjcRuntime;
import org.jspecify.annotations.Nullable;

/** Metal's C functions. Loads on every platform. */
final class MetalFramework {
  /** Without it loaded, a command-line process can get nil for the default device. */
  private static final NativeLibrary CORE_GRAPHICS = load("CoreGraphics");

  private static final NativeLibrary METAL = load("Metal");

  static final CFunction CREATE_SYSTEM_DEFAULT_DEVICE =
      CFunction.in(METAL, "MTLCreateSystemDefaultDevice");
  static final CFunction COPY_ALL_DEVICES = CFunction.in(METAL, "MTLCopyAllDevices");

  private MetalFramework() {}

  private static NativeLibrary load(String name) {
    return ObjcRuntime.unavailableReason() == null
        ? NativeLibrary.framework(name)
        : ObjcRuntime.library();
  }

  /** Why Metal cannot be used at all; null if the libraries are loaded. */
  static @Nullable String unavailableReason() {
    for (String reason :
        new String[] {
          ObjcRuntime.unavailableReason(),
          CORE_GRAPHICS.unavailableReason(),
          METAL.unavailableReason()
        }) {
      if (reason != null) {
        return reason;
      }
    }
    return null;
  }
}
