package dev.lily.metal;

import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.contract.BackendContract;
import dev.lily.metal.device.MetalDouble;
import dev.lily.metal.device.MetalDoubleExtension;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.extension.ExtendWith;

/** The contract on a double that has hardware for tensor operations. */
@ExtendWith(MetalDoubleExtension.class)
class TensorContractTest extends BackendContract {
  @BeforeEach
  void useKernels(MetalDouble metal) {
    metal.useKernels();
    metal.set("family", 1010);
  }

  @Override
  protected Backend open() {
    return new MetalBackendProvider().open(BackendOptions.DEFAULT);
  }

  @Override
  protected double epsilon() {
    return 0x1p-7;
  }

  /** {@link DecodePathTest} bounds the difference. */
  @Override
  protected boolean decodesToTheBitsOfPrefill() {
    return false;
  }
}
