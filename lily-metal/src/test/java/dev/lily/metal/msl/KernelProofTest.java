package dev.lily.metal.msl;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The checks for a machine with a GPU, small and on the processor. */
class KernelProofTest {
  @ParameterizedTest
  @ValueSource(strings = {"elementwise", "matmul", "delta", "attention", "experts", "sampling"})
  void agreesWithDoublePrecision(String family) {
    Proof proof = new Proof(Tools.kernels(), Proof.Scale.SMOKE, 35);
    KernelProof.run(proof, List.of(family));
    assertThat(proof.checks()).isPositive();
    assertThat(proof.failures()).isEmpty();
  }
}
