package dev.lily.metal.device;

/**
 * Kernel source did not compile, or a kernel is not in it. The message has the compiler's output.
 */
public final class ShaderCompilationException extends MetalException {
  private static final long serialVersionUID = 1L;

  ShaderCompilationException(String message) {
    super(message);
  }
}
