package dev.lily.metal.device;

import java.util.List;
import java.util.Optional;
import org.opentest4j.TestAbortedException;

/**
 * The GPU that a test runs on: this machine's own, or the {@linkplain MetalDouble double}. Tests of
 * what holds on both get it as a parameter through {@link MetalGpuExtension}.
 */
public final class MetalGpu {
  /** Which of the two. */
  public enum Kind {
    /** This machine's GPU; macOS only. */
    DEVICE,
    /** The double; Linux on x86-64 only. */
    DOUBLE
  }

  /**
   * The environment variable that says which: {@code device} or {@code double}. Then a test whose
   * GPU cannot be had fails. Without it a Mac takes its GPU and other machines the double, and a
   * test skips, with the reason, where that one cannot be had.
   */
  public static final String VARIABLE = "LILY_METAL_TESTS";

  private final Kind kind;
  private final Optional<MetalDouble> asDouble;

  private MetalGpu(Kind kind, Optional<MetalDouble> asDouble) {
    this.kind = kind;
    this.asDouble = asDouble;
  }

  /** The kind of the tests in this process. */
  public static Kind chosen() {
    return chosen(System.getenv(VARIABLE), System.getProperty("os.name", ""));
  }

  static Kind chosen(String variable, String osName) {
    return switch (variable == null ? "" : variable) {
      case "device" -> Kind.DEVICE;
      case "double" -> Kind.DOUBLE;
      case "" -> osName.startsWith("Mac") ? Kind.DEVICE : Kind.DOUBLE;
      default ->
          throw new IllegalArgumentException(
              VARIABLE + " is '" + variable + "'; it must be 'device' or 'double'");
    };
  }

  /** Whether the variable asks for one, so that its absence is a failure. */
  static boolean isRequired() {
    return System.getenv(VARIABLE) != null && !System.getenv(VARIABLE).isEmpty();
  }

  /** The chosen one. */
  static MetalGpu get() {
    return chosen() == Kind.DEVICE
        ? new MetalGpu(Kind.DEVICE, Optional.empty())
        : new MetalGpu(Kind.DOUBLE, Optional.of(MetalDouble.install()));
  }

  /** Why this machine's GPU cannot be had; empty if it can. */
  static Optional<String> missingDevice() {
    try (MetalDevice _ = MetalDevice.open()) {
      return Optional.empty();
    } catch (MetalException e) {
      return Optional.of(String.valueOf(e.getMessage()));
    }
  }

  public Kind kind() {
    return kind;
  }

  /** The double, for what only it can pretend to be; on a device the test skips. */
  public MetalDouble requireDouble() {
    return asDouble.orElseThrow(
        () -> new TestAbortedException("this machine's GPU is what it is; only the double varies"));
  }

  /** Lets the double run the back end's kernels, every access checked, as it does by itself. */
  public void useKernels() {
    asDouble.ifPresent(MetalDouble::useKernels);
  }

  /** Lets the double run the back end's kernels without checks. */
  public void useFastKernels() {
    asDouble.ifPresent(MetalDouble::useFastKernels);
  }

  /** Barriers that ordered nothing, which only the double sees. */
  public List<String> notes() {
    return asDouble.map(MetalDouble::notes).orElse(List.of());
  }
}
