package dev.lily.engine.backend.cpu;

import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.KeyValueType;
import dev.lily.engine.backend.contract.BackendContract;
import java.time.Duration;
import org.junit.jupiter.api.condition.EnabledIf;

/** The vector kernels over weights that stay in the checkpoint's mapping. */
@EnabledIf(
    value = "dev.lily.engine.backend.cpu.KernelPaths#hasVector",
    disabledReason = "jdk.incubator.vector is not in this JVM")
class MappedVectorBackendContractTest extends BackendContract {
  @Override
  protected Backend open() {
    return CpuBackendProvider.open(
        new BackendOptions(2, "vector", "mapped", Duration.ofMillis(100), "never"), true);
  }

  @Override
  protected KeyValueType keyValueType() {
    return KeyValueType.FP32;
  }
}
