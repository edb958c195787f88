package dev.lily.metal.device;

/** A buffer could not be made: too large, or the device is out of memory. */
public final class DeviceMemoryException extends MetalException {
  private static final long serialVersionUID = 1L;

  DeviceMemoryException(String message) {
    super(message);
  }
}
