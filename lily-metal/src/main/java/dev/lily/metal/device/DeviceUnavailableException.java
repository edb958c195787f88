package dev.lily.metal.device;

/** There is no GPU that this back end can use, or the device would not make a basic object. */
public final class DeviceUnavailableException extends MetalException {
  private static final long serialVersionUID = 1L;

  DeviceUnavailableException(String message) {
    super(message);
  }
}
