package dev.lily.metal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.BackendOptions;
import dev.lily.metal.device.MetalGpu;
import java.time.Duration;

/**
 * The contract with prefill through tensor operations, whether or not the GPU has hardware for
 * them.
 */
class TensorContractTest extends MetalBackendContractTest {
  private static final BackendOptions ALWAYS =
      new BackendOptions(0, "auto", Duration.ofMillis(100), "always");

  @Override
  protected Backend open() {
    Backend backend = new MetalBackendProvider().open(ALWAYS);
    boolean isTensor = backend.device().detail().endsWith("prefill by tensor operations");
    if (!isTensor) {
      backend.close();
    }
    // An older macOS does not compile them; the double always does.
    assumeTrue(isTensor || MetalGpu.chosen() == MetalGpu.Kind.DOUBLE, "no MSL 4.0 on this Mac");
    assertThat(isTensor).isTrue();
    return backend;
  }
}
