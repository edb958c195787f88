package dev.lily.metal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.ModelShape;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.StateLayout;
import dev.lily.metal.device.MetalGpuExtension;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The memory tables of the documentation are what the planner says. */
class MemoryTableTest {
  private static final Path PAGE =
      Path.of(System.getProperty("basedir", "")).toAbsolutePath().resolveSibling("docs/metal.md");

  private static List<String> written(String name) throws IOException {
    List<String> page = Files.readAllLines(PAGE);
    int marker = page.indexOf("<!-- memory: " + name + " -->");
    assertThat(marker).as("the marker of table '%s' in %s", name, PAGE).isNotNegative();
    return page.subList(marker + 1, page.size()).stream()
        .takeWhile(line -> line.startsWith("|"))
        .toList();
  }

  @ParameterizedTest
  @ValueSource(strings = {"needs", "limits", "contexts"})
  void isWhatThePlannerSays(String name) throws IOException {
    List<String> expected = MemoryTable.all().get(name);
    assertThat(String.join("\n", written(name)))
        .as("table '%s' of %s; the planner's is below, and MemoryTable prints all", name, PAGE)
        .isEqualTo(String.join("\n", expected));
  }

  /** The sum over the shapes of every text tensor of the published checkpoint. */
  @Test
  void countsTheWeightsOfThePublishedCheckpoint() {
    assertThat(MemoryTable.weightBytes()).isEqualTo(19_508_787_456L);
    assertThat(MemoryTable.fileBytes()).isEqualTo(20_401_929_952L);
  }

  @Nested
  @ExtendWith(MetalGpuExtension.class)
  class WithTheBackEnd {
    @Test
    void countsAsTheBackEndDoes() {
      StateLayout layout = new StateLayout(10, 2, 256, 32, 3, 30, 4, 8192, 32, 128, 128, 2, 2, 999);
      ModelShape shape = new ModelShape(2048, 16, 256, 4096, 256, 8, 512, 512, 999);
      PassLimits limits = new PassLimits(258, 2, 2, 4096);
      Backend sizes = new MemoryTable.Sizes(1);
      try (Backend metal = new MetalBackendProvider().open(BackendOptions.DEFAULT)) {
        assertThat(metal.stateBytes(layout)).isEqualTo(sizes.stateBytes(layout));
        assertThat(metal.workspaceBytes(shape, limits))
            .isEqualTo(sizes.workspaceBytes(shape, limits));
        assertThat(metal.tensorBytes(258, 2048)).isEqualTo(sizes.tensorBytes(258, 2048));
        assertThat(metal.weightBytes(1, 2)).isEqualTo(sizes.weightBytes(1, 2));
      }
    }
  }
}
