package dev.lily.engine.backend;

/** Entry point of a back end, found by {@link java.util.ServiceLoader}. */
public interface BackendProvider {
  /** Name used in configuration, for example {@code cpu} or {@code metal}. */
  String id();

  /** Preference when the user names none; the highest available one wins. */
  int priority();

  /** Checks the machine. Must not throw, and must be cheap. */
  Availability availability();

  /**
   * Opens the device.
   *
   * @throws BackendException if the device or an option is unusable
   */
  Backend open(BackendOptions options);
}
