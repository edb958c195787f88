package dev.lily.engine.backend;

/**
 * What a user may say about the device.
 *
 * @param threads compute threads of the CPU back end; 0 lets the back end choose
 * @param kernels kernel family of the CPU back end: {@code auto}, {@code vector} or {@code scalar}
 */
public record BackendOptions(int threads, String kernels) {
  /** The back end chooses. */
  public static final BackendOptions DEFAULT = new BackendOptions(0, "auto");

  public BackendOptions {
    if (threads < 0) {
      throw new BackendException("threads is " + threads + "; it must be 0 (automatic) or more");
    }
  }
}
