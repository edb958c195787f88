package dev.lily.metal.device;

import dev.lily.engine.backend.BackendException;

/** Metal refused or failed something. */
public sealed class MetalException extends BackendException
    permits CommandBufferException,
        DeviceMemoryException,
        DeviceUnavailableException,
        ShaderCompilationException {
  private static final long serialVersionUID = 1L;

  MetalException(String message) {
    super(message);
  }
}
