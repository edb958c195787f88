package dev.lily.metal;

import dev.lily.engine.backend.Availability;
import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.BackendProvider;
import java.util.Locale;

/**
 * Offers the Metal back end. It needs an Apple silicon Mac with macOS {@value #MIN_MACOS} or newer;
 * this build has no kernels yet and says so on such a machine.
 */
public final class MetalBackendProvider implements BackendProvider {

  /** First macOS version that has what the kernels need. */
  static final int MIN_MACOS = 15;

  private static final String USE_CPU = "Use the CPU back end: lily.backend=cpu, or auto.";

  @Override
  public String id() {
    return "metal";
  }

  /** Above the CPU back end. */
  @Override
  public int priority() {
    return 100;
  }

  @Override
  public Availability availability() {
    return check();
  }

  private static Availability.Unavailable check() {
    return check(
        System.getProperty("os.name", ""),
        System.getProperty("os.arch", ""),
        System.getProperty("os.version", ""));
  }

  /** The check as a function of the JVM's {@code os.*} properties. */
  static Availability.Unavailable check(String osName, String arch, String version) {
    if (!osName.toLowerCase(Locale.ROOT).startsWith("mac")) {
      return new Availability.Unavailable(
          "Metal exists on macOS only; this is " + (osName.isEmpty() ? "unknown" : osName),
          USE_CPU);
    }
    if (!arch.equals("aarch64")) {
      return new Availability.Unavailable(
          "Metal kernels need Apple silicon; this JVM runs as " + arch,
          "On an Apple silicon Mac start a JDK built for aarch64; elsewhere use the CPU back end.");
    }
    int major = majorVersion(version);
    if (major < MIN_MACOS) {
      return new Availability.Unavailable(
          "Metal kernels need macOS " + MIN_MACOS + " or newer; this is macOS " + version,
          "Update macOS, or use the CPU back end.");
    }
    return new Availability.Unavailable("Metal kernels are not part of this build yet", USE_CPU);
  }

  /** The number before the first dot; 0 if there is none. */
  private static int majorVersion(String version) {
    int dot = version.indexOf('.');
    String major = dot < 0 ? version : version.substring(0, dot);
    try {
      return Integer.parseInt(major);
    } catch (NumberFormatException e) {
      return 0;
    }
  }

  @Override
  public Backend open(BackendOptions options) {
    Availability.Unavailable why = check();
    throw new BackendException("Opening back end 'metal': " + why.reason() + ". " + why.remedy());
  }
}
