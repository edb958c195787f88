package dev.lily.spring.actuate;

import dev.lily.spring.OverflowReason;
import dev.lily.spring.OverflowRecorder;
import io.micrometer.core.instrument.MeterRegistry;

/** Counter {@code lily.overflow} by {@code reason} and {@code model}. */
public final class MeteredOverflowRecorder implements OverflowRecorder {
  private final MeterRegistry registry;

  public MeteredOverflowRecorder(MeterRegistry registry) {
    this.registry = registry;
  }

  @Override
  public void record(OverflowReason reason, String model) {
    registry.counter("lily.overflow", "reason", reason.tag(), "model", model).increment();
  }
}
