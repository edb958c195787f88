package dev.lily.metal;

import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.contract.BackendContract;
import dev.lily.metal.device.MetalGpuExtension;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * The contract on this machine's GPU if it is a Mac, otherwise on the double of Metal, which runs
 * the kernels on the processor.
 */
@ExtendWith(MetalGpuExtension.class)
class MetalBackendContractTest extends BackendContract {
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
