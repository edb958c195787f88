package dev.lily.metal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.withinPercentage;

import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.DeviceState;
import dev.lily.engine.backend.KeyValueType;
import dev.lily.engine.backend.ModelShape;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.StateLayout;
import dev.lily.engine.backend.UnsupportedKeyValueTypeException;
import dev.lily.metal.device.MetalDouble;
import dev.lily.metal.device.MetalDoubleExtension;
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
  @ValueSource(strings = {"needs", "limits", "contexts", "plans"})
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
  @ExtendWith(MetalDoubleExtension.class)
  class WithTheDouble {
    private static final ModelShape SHAPE =
        new ModelShape(2048, 16, 256, 4096, 256, 8, 512, 512, 999);
    private static final PassLimits LIMITS = new PassLimits(17, 1, 1, 4096);

    private static StateLayout layout(int pages, int slots) {
      return new StateLayout(10, 2, 256, 32, pages, 30, 4, 8192, 32, 128, 128, slots, 1, 999);
    }

    private static long allocated(Backend backend, StateLayout layout, MetalDouble metal) {
      long before = metal.get("allocated");
      try (DeviceState state = backend.openState(layout, SHAPE, LIMITS)) {
        assertThat(state.bytes()).isEqualTo(backend.stateBytes(layout));
        return metal.get("allocated") - before;
      }
    }

    @Test
    void allocatesWhatThePlanCountsForPagesAndSlots(MetalDouble metal) {
      metal.useKernels();
      try (Backend backend = new MetalBackendProvider().open(BackendOptions.DEFAULT)) {
        long one = allocated(backend, layout(1, 1), metal);
        long scratch = backend.workspaceBytes(SHAPE, LIMITS);
        assertThat(one).isLessThanOrEqualTo(backend.stateBytes(layout(1, 1)) + scratch);
        for (StateLayout layout : new StateLayout[] {layout(33, 1), layout(1, 2)}) {
          assertThat(allocated(backend, layout, metal) - one)
              .isCloseTo(
                  backend.stateBytes(layout) - backend.stateBytes(layout(1, 1)),
                  withinPercentage(2));
        }
      }
    }
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
        assertThatExceptionOfType(UnsupportedKeyValueTypeException.class)
            .isThrownBy(() -> metal.stateBytes(layout.with(KeyValueType.INT8)));
        assertThat(metal.workspaceBytes(shape, limits))
            .isEqualTo(sizes.workspaceBytes(shape, limits));
        assertThat(metal.tensorBytes(258, 2048)).isEqualTo(sizes.tensorBytes(258, 2048));
        assertThat(metal.weightBytes(1, 2)).isEqualTo(sizes.weightBytes(1, 2));
      }
    }
  }
}
