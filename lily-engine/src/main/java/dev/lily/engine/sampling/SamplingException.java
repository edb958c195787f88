package dev.lily.engine.sampling;

/** No token can be chosen from a row of logits. The sampling state was not advanced. */
public final class SamplingException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** Why nothing could be chosen. */
  public enum Reason {
    /** Every logit is NaN or negative infinity: the model's result is damaged. */
    NO_USABLE_LOGIT,
    /** The mask allows no token, or none whose logit is usable. */
    NOTHING_ALLOWED
  }

  private final Reason reason;

  public SamplingException(Reason reason, String message) {
    super(message);
    this.reason = reason;
  }

  public Reason reason() {
    return reason;
  }
}
