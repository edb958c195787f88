package dev.lily.metal.msl;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;

/** The checks for a machine with a GPU, small and on the processor. */
class KernelProofTest {
  @Test
  void agreesWithDoublePrecision() {
    Proof proof = new Proof(Tools.kernels(), Proof.Scale.SMOKE, 35);
    KernelProof.run(proof, List.of());
    assertThat(proof.failures()).isEmpty();
    // Heads are narrow here.
    List<String> dispatched =
        proof.dispatched().stream()
            .map(name -> name.replace("_d64", "_d256"))
            .map(name -> name.equals("attention_decode") ? "attention_decode_d256" : name)
            .toList();
    assertThat(dispatched).containsExactlyInAnyOrderElementsOf(KernelProof.KERNELS);
  }
}
