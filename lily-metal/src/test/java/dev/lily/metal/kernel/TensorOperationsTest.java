package dev.lily.metal.kernel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.BackendOptions;
import dev.lily.metal.MetalBackendProvider;
import dev.lily.metal.device.MetalDouble;
import dev.lily.metal.device.MetalDoubleExtension;
import java.time.Duration;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Where prefill goes through tensor operations, and that nothing fails where they can't. */
@ExtendWith(MetalDoubleExtension.class)
class TensorOperationsTest {
  private static final long MSL_3_2 = (3 << 16) + 2;

  @BeforeEach
  void useKernels(MetalDouble metal) {
    metal.useKernels();
  }

  private static String detail() {
    return detail("auto");
  }

  private static String detail(String setting) {
    BackendOptions options = new BackendOptions(0, "auto", Duration.ofMillis(100), setting);
    try (Backend backend = new MetalBackendProvider().open(options)) {
      return backend.device().detail();
    }
  }

  @ParameterizedTest
  @CsvSource({
    "1007, auto, simdgroup_matrix",
    "1009, auto, simdgroup_matrix",
    "1010, auto, tensor operations",
    "1009, always, tensor operations",
    "1010, never, simdgroup_matrix",
  })
  void followsTheHardwareAndTheSetting(
      int family, String setting, String expected, MetalDouble metal) {
    metal.set("family", family);
    assertThat(detail(setting)).endsWith("prefill by " + expected);
  }

  @Test
  void doesWithoutThemWhereTheLanguageIsTooOld(MetalDouble metal) {
    metal.set("family", 1010);
    metal.set("language", MSL_3_2);
    assertThat(detail()).endsWith("prefill by simdgroup_matrix");
  }

  @ParameterizedTest
  @CsvSource({"library, 7", "library, 8", "pipeline, -1"})
  void doesWithoutThemWhereTheyDoNotCompile(String event, int after, MetalDouble metal) {
    metal.set("family", 1010);
    int successes = after < 0 ? KernelLibrary.names().size() + after : after;
    metal.fail(event, successes, "MTLLibraryErrorDomain", 3, "static_assert failed");
    assertThat(detail()).endsWith("prefill by simdgroup_matrix");
  }

  @Test
  void refusesASettingThatIsNone() {
    assertThatExceptionOfType(BackendException.class)
        .isThrownBy(() -> detail("yes"))
        .withMessageContaining("must be auto, always or never");
  }
}
