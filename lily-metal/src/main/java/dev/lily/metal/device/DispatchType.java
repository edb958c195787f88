package dev.lily.metal.device;

/** How the dispatches of an encoder are ordered. */
public enum DispatchType {
  /** Each waits for the one before. */
  SERIAL(0),
  /** Only a {@link ComputeEncoder#barrier} orders them. */
  CONCURRENT(1);

  private final long value;

  DispatchType(long value) {
    this.value = value;
  }

  long value() {
    return value;
  }
}
