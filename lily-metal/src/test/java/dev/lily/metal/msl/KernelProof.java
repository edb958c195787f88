package dev.lily.metal.msl;

import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Checks every kernel that the 35B uses, at its shapes, against double precision.
 *
 * <p>Arguments: a scale, and families to leave it at (all if none). The seed of the random data is
 * a new one, or that of the environment's {@code LILY_SEED}.
 */
final class KernelProof {
  private KernelProof() {}

  public static void main(String[] arguments) {
    Proof.Scale scale = Proof.Scale.valueOf(arguments[0].toUpperCase(Locale.ROOT));
    String seed = System.getenv().getOrDefault("LILY_SEED", "");
    long chosen =
        seed.isEmpty() ? ThreadLocalRandom.current().nextLong(1L << 32) : Long.parseLong(seed);
    Proof proof = new Proof(Tools.kernels(), scale, chosen);
    System.out.println(proof.kernels().description());
    List<String> families = List.of(arguments).subList(1, arguments.length);
    long begin = System.nanoTime();
    run(proof, families);
    System.out.printf(
        Locale.ROOT,
        "checks: %d, failed: %d, %.1f s%n",
        proof.checks(),
        proof.failures().size(),
        (System.nanoTime() - begin) / 1e9);
    System.exit(proof.failures().isEmpty() ? 0 : 1);
  }

  /** Runs the families named, or all. */
  static void run(Proof proof, List<String> families) {
    Map<String, Runnable> all =
        Map.of(
            "elementwise", () -> new ElementwiseProof(proof).run(),
            "matmul", () -> new MatmulProof(proof).run(),
            "delta", () -> new DeltaRuleProof(proof).run(),
            "attention", () -> new AttentionProof(proof).run(),
            "experts", () -> new ExpertsProof(proof).run(),
            "sampling", () -> new SamplingProof(proof).run());
    List<String> wanted =
        families.isEmpty()
            ? List.of("elementwise", "matmul", "delta", "attention", "experts", "sampling")
            : families;
    for (String family : wanted) {
      Runnable part = all.get(family);
      if (part == null) {
        throw new IllegalArgumentException("No family " + family + "; there are " + all.keySet());
      }
      try {
        part.run();
      } catch (AssertionError e) {
        proof.fail(family, e);
      }
    }
  }
}
