package dev.lily.metal.device;

import dev.lily.metal.objc.NSError;

/**
 * The GPU did not complete a command buffer. What the buffer's kernels should have written is
 * undefined. The device can still be closed.
 */
public abstract sealed class CommandBufferException extends MetalException {
  private static final long serialVersionUID = 1L;

  private final long code;
  private final boolean deviceUsable;

  private CommandBufferException(NSError error, String rule, boolean deviceUsable) {
    super(
        "Running a command buffer: "
            + rule
            + " ("
            + error.domain()
            + " "
            + error.code()
            + ": "
            + error.description()
            + ")");
    this.code = error.code();
    this.deviceUsable = deviceUsable;
  }

  /** The code in {@code MTLCommandBufferErrorDomain}. */
  public final long code() {
    return code;
  }

  /**
   * Whether later command buffers of this process may be expected to run. False after a watchdog's
   * kill, too: the driver soon ignores a process that was killed, until it exits.
   */
  public final boolean isDeviceUsable() {
    return deviceUsable;
  }

  /**
   * The exception for an error. The driver's own name at the end of the description says more than
   * the code and is looked at first.
   */
  static CommandBufferException of(NSError error) {
    String description = error.description();
    if (description.contains("ErrorSubmissionsIgnored")) {
      return new SubmissionsIgnored(error);
    }
    if (description.contains("ErrorImpactingInteractivity")) {
      return new ImpactingInteractivity(error);
    }
    if (description.contains("ErrorInnocentVictim")) {
      return new InnocentVictim(error);
    }
    if (description.contains("ErrorTimeout") || description.contains("ErrorHang")) {
      return new Timeout(error);
    }
    if (description.contains("ErrorOutOfMemory")) {
      return new OutOfMemory(error);
    }
    if (description.contains("ErrorPageFault")) {
      return new PageFault(error);
    }
    return switch ((int) error.code()) {
      case 2 -> new Timeout(error);
      case 3 -> new PageFault(error);
      case 4 -> new SubmissionsIgnored(error);
      case 7 -> new NotPermitted(error);
      case 8 -> new OutOfMemory(error);
      case 9 -> new InvalidResource(error);
      case 11 -> new DeviceRemoved(error);
      case 12 -> new StackOverflow(error);
      default -> new InternalFailure(error);
    };
  }

  /** Killed by the watchdog for running too long. */
  public static final class Timeout extends CommandBufferException {
    private static final long serialVersionUID = 1L;

    private Timeout(NSError error) {
      super(
          error,
          "it ran too long for the watchdog; use smaller prefill chunks, and restart this process",
          false);
    }
  }

  /** Killed because the display waited for it. */
  public static final class ImpactingInteractivity extends CommandBufferException {
    private static final long serialVersionUID = 1L;

    private ImpactingInteractivity(NSError error) {
      super(
          error,
          "it kept the GPU from the display for too long; use smaller prefill chunks, and restart this process",
          false);
    }
  }

  /** The memory it uses could not be made resident. */
  public static final class OutOfMemory extends CommandBufferException {
    private static final long serialVersionUID = 1L;

    private OutOfMemory(NSError error) {
      super(
          error,
          "the GPU is out of memory; use a shorter context, or raise the limit with sudo sysctl iogpu.wired_limit_mb=N",
          true);
    }
  }

  /** A kernel touched memory that no buffer covers. */
  public static final class PageFault extends CommandBufferException {
    private static final long serialVersionUID = 1L;

    private PageFault(NSError error) {
      super(
          error,
          "a kernel used an address outside its buffers; this is a defect, please report it",
          false);
    }
  }

  /** The driver accepts no more work from this process. */
  public static final class SubmissionsIgnored extends CommandBufferException {
    private static final long serialVersionUID = 1L;

    private SubmissionsIgnored(NSError error) {
      super(error, "the driver ignores this process after earlier GPU errors; restart it", false);
    }
  }

  /** Discarded while the GPU recovered from another error. */
  public static final class InnocentVictim extends CommandBufferException {
    private static final long serialVersionUID = 1L;

    private InnocentVictim(NSError error) {
      super(error, "it was discarded while the GPU recovered from another error", true);
    }
  }

  /** The process may not use the GPU now. */
  public static final class NotPermitted extends CommandBufferException {
    private static final long serialVersionUID = 1L;

    private NotPermitted(NSError error) {
      super(
          error,
          "this process may not use the GPU; does it run in the background or in a sandbox?",
          false);
    }
  }

  /** A buffer was gone or unusable. */
  public static final class InvalidResource extends CommandBufferException {
    private static final long serialVersionUID = 1L;

    private InvalidResource(NSError error) {
      super(error, "a resource was invalid; this is a defect, please report it", false);
    }
  }

  /** The GPU is gone. */
  public static final class DeviceRemoved extends CommandBufferException {
    private static final long serialVersionUID = 1L;

    private DeviceRemoved(NSError error) {
      super(error, "the GPU was removed", false);
    }
  }

  /** A kernel ran out of stack. */
  public static final class StackOverflow extends CommandBufferException {
    private static final long serialVersionUID = 1L;

    private StackOverflow(NSError error) {
      super(error, "a kernel ran out of stack; this is a defect, please report it", false);
    }
  }

  /** Any other error. */
  public static final class InternalFailure extends CommandBufferException {
    private static final long serialVersionUID = 1L;

    private InternalFailure(NSError error) {
      super(error, "Metal reports an internal error", false);
    }
  }
}
