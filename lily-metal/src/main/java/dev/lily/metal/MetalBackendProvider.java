package dev.lily.metal;

import dev.lily.engine.backend.Availability;
import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.BackendProvider;
import dev.lily.metal.device.MetalDevice;
import dev.lily.metal.device.MetalException;
import dev.lily.metal.objc.ObjcException;
import dev.lily.metal.objc.ObjcRuntime;
import java.util.Locale;
import java.util.Objects;
import java.util.Optional;

/**
 * Offers the Metal back end. It needs an Apple silicon Mac with macOS {@value #MIN_MACOS} or newer.
 */
public final class MetalBackendProvider implements BackendProvider {

  static final String ID = "metal";

  /** First macOS version that has what the kernels need. */
  static final int MIN_MACOS = MetalDevice.MIN_MACOS;

  private static final String USE_CPU = "Use the CPU back end: lily.backend=cpu, or auto.";

  @Override
  public String id() {
    return ID;
  }

  /** Above the CPU back end. */
  @Override
  public int priority() {
    return 10;
  }

  @Override
  public Availability availability() {
    Optional<Availability.Unavailable> reason = platform();
    return reason.isPresent() ? reason.get() : device();
  }

  /** What rules Metal out before any library is loaded. */
  private static Optional<Availability.Unavailable> platform() {
    if (!System.getProperty(ObjcRuntime.LIBRARY_PROPERTY, "").isEmpty()) {
      return Optional.empty(); // another library stands for the system's
    }
    return check(
        System.getProperty("os.name", ""),
        System.getProperty("os.arch", ""),
        System.getProperty("os.version", ""));
  }

  private static Availability device() {
    try (MetalDevice device = MetalDevice.open()) {
      return new Availability.Available(device.name());
    } catch (MetalException | ObjcException e) {
      return new Availability.Unavailable(
          Objects.requireNonNullElse(e.getMessage(), "The GPU cannot be opened"), USE_CPU);
    }
  }

  /** The check as a function of the JVM's {@code os.*} properties; empty if nothing is amiss. */
  static Optional<Availability.Unavailable> check(String osName, String arch, String version) {
    if (!osName.toLowerCase(Locale.ROOT).startsWith("mac")) {
      return unavailable(
          "Metal exists on macOS only; this is " + (osName.isEmpty() ? "unknown" : osName),
          USE_CPU);
    }
    if (!arch.equals("aarch64")) {
      return unavailable(
          "Metal kernels need Apple silicon; this JVM runs as " + arch,
          "On an Apple silicon Mac start a JDK built for aarch64; elsewhere use the CPU back end.");
    }
    int major = majorVersion(version);
    if (major < MIN_MACOS) {
      return unavailable(
          "Metal kernels need macOS " + MIN_MACOS + " or newer; this is macOS " + version,
          "Update macOS, or use the CPU back end.");
    }
    return Optional.empty();
  }

  private static Optional<Availability.Unavailable> unavailable(String reason, String remedy) {
    return Optional.of(new Availability.Unavailable(reason, remedy));
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
    Optional<Availability.Unavailable> reason = platform();
    if (reason.isPresent()) {
      Availability.Unavailable why = reason.get();
      throw new BackendException("Opening back end 'metal': " + why.reason() + ". " + why.remedy());
    }
    return MetalBackend.open(options);
  }
}
