package dev.lily.metal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.lily.engine.EngineOptions;
import dev.lily.engine.LilyEngine;
import dev.lily.engine.ModelDoesNotFitException;
import dev.lily.engine.ModelInfo;
import dev.lily.metal.device.MetalDouble;
import dev.lily.metal.device.MetalDoubleExtension;
import dev.lily.metal.device.ShaderCompilationException;
import dev.lily.metal.objc.ObjcRuntime;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.DisabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.extension.ExtendWith;

/** {@code lily.backend=auto}: Metal where it runs the model, else the CPU and why. */
@ExtendWith(MetalDoubleExtension.class)
class AutomaticChoiceTest {
  @BeforeEach
  void useKernels(MetalDouble metal) {
    metal.useKernels();
  }

  private static LilyEngine open(String backend) {
    Path nano = Path.of(System.getProperty("lily.nano.dir"));
    return LilyEngine.open(
        EngineOptions.builder(nano).backend(backend).contextLength(256).maxSessions(1).build());
  }

  private static ModelInfo chosen() {
    try (LilyEngine engine = open("auto")) {
      return engine.model();
    }
  }

  @Test
  void isMetalWhereItIsThere() {
    ModelInfo model = chosen();
    assertThat(model.backend()).isEqualTo("metal");
    assertThat(model.backendReason()).isEqualTo("metal (Metal double)");
  }

  @Test
  void isTheProcessorWhereTheGpuMayNotUseEnoughMemory(MetalDouble metal) {
    metal.set("recommended", 1 << 20);
    ModelInfo model = chosen();
    assertThat(model.backend()).isEqualTo("cpu");
    assertThat(model.backendReason())
        .contains("; not metal: The model needs ", "only 1.0 MiB may be used")
        .contains("sudo sysctl iogpu.wired_limit_mb=");
    assertThatExceptionOfType(ModelDoesNotFitException.class)
        .isThrownBy(() -> open("metal"))
        .withMessageContaining("sudo sysctl iogpu.wired_limit_mb=");
  }

  @Test
  void isTheProcessorWhereTheKernelsDoNotCompile(MetalDouble metal) {
    metal.fail("library", 0, "MTLLibraryErrorDomain", 3, "error: no such type\nand much more");
    ModelInfo model = chosen();
    assertThat(model.backend()).isEqualTo("cpu");
    assertThat(model.backendReason())
        .contains("; not metal: Compiling ", "no such type")
        .doesNotContain("much more");
    metal.fail("library", 0, "MTLLibraryErrorDomain", 3, "error: no such type");
    assertThatExceptionOfType(ShaderCompilationException.class).isThrownBy(() -> open("metal"));
  }

  @Test
  void isTheProcessorWhereTheGpuIsTooOld(MetalDouble metal) {
    metal.set("family", 1006);
    assertThat(chosen().backendReason())
        .startsWith("cpu (")
        .contains("; not metal: Opening the GPU 'Metal double': Apple silicon (M1 or newer)");
  }

  @Test
  @DisabledOnOs(value = OS.MAC, disabledReason = "Macs have Metal")
  void isTheProcessorElsewhere() {
    String substitute = System.clearProperty(ObjcRuntime.LIBRARY_PROPERTY);
    try {
      assertThat(chosen().backendReason())
          .startsWith("cpu (")
          .contains("; not metal: Metal exists on macOS only; this is ");
    } finally {
      System.setProperty(ObjcRuntime.LIBRARY_PROPERTY, substitute);
    }
  }
}
