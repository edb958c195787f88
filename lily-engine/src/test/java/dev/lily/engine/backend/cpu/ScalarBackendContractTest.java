package dev.lily.engine.backend.cpu;

import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.KeyValueType;
import dev.lily.engine.backend.contract.BackendContract;

class ScalarBackendContractTest extends BackendContract {
  @Override
  protected Backend open() {
    return CpuBackendProvider.open(new BackendOptions(2, "scalar"), true);
  }

  @Override
  protected KeyValueType keyValueType() {
    return KeyValueType.FP32;
  }
}
