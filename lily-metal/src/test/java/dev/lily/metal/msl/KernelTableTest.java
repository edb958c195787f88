package dev.lily.metal.msl;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Locale;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

class KernelTableTest {
  @Test
  void buildsEveryKernelOfEverySourceUnderItsOwnName() {
    List<String> names = Tools.kernels().names();
    TreeSet<String> inSources = new TreeSet<>();
    for (String family : MslToolchain.FAMILIES) {
      MslTranslator source = Tools.toolchain().preprocess(family, MslToolchain.source(family));
      for (MslTranslator.Kernel kernel : source.kernels()) {
        assertThat(inSources.add(kernel.name())).as("one kernel %s", kernel.name()).isTrue();
      }
    }
    assertThat(names).containsExactlyElementsOf(inSources);
    System.out.printf(Locale.ROOT, "Metal kernels: %d%n", names.size());
  }
}
