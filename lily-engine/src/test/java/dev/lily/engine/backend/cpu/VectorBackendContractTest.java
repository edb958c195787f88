package dev.lily.engine.backend.cpu;

import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.KeyValueType;
import dev.lily.engine.backend.contract.BackendContract;
import org.junit.jupiter.api.condition.EnabledIf;

@EnabledIf(
    value = "dev.lily.engine.backend.cpu.KernelPaths#hasVector",
    disabledReason = "jdk.incubator.vector is not in this JVM")
class VectorBackendContractTest extends BackendContract {
  @Override
  protected Backend open() {
    return CpuBackendProvider.open(new BackendOptions(2, "vector"), true);
  }

  @Override
  protected KeyValueType keyValueType() {
    return KeyValueType.FP32;
  }
}
