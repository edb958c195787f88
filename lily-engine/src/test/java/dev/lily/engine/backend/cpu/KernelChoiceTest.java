package dev.lily.engine.backend.cpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import dev.lily.engine.backend.BackendException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIf;
import org.slf4j.LoggerFactory;

class KernelChoiceTest {
  private final ListAppender<ILoggingEvent> log = new ListAppender<>();
  private final Logger logger = (Logger) LoggerFactory.getLogger(KernelChoice.class);

  @BeforeEach
  void listen() {
    log.start();
    logger.addAppender(log);
  }

  @AfterEach
  void stopListening() {
    logger.detachAppender(log);
  }

  @Test
  @EnabledIf(
      value = "dev.lily.engine.backend.cpu.KernelPaths#hasVector",
      disabledReason = "jdk.incubator.vector is not in this JVM")
  void takesVectorsWhenTheyAreThere() {
    assertThat(new KernelChoice(true, true).kernels("auto").detail()).startsWith("vector ");
    assertThat(log.list).isEmpty();
  }

  @Test
  void warnsOnceWithTheFlagWhenTheModuleIsMissing() {
    assertThat(new KernelChoice(false, true).kernels("auto").detail()).isEqualTo("scalar");
    assertThat(log.list)
        .singleElement()
        .satisfies(
            event ->
                assertThat(event.getFormattedMessage())
                    .contains("--add-modules=jdk.incubator.vector"));
  }

  @Test
  void warnsWhenTheOptimizingCompilerIsOff() {
    assertThat(new KernelChoice(true, false).kernels("auto").detail()).isEqualTo("scalar");
    assertThat(log.list)
        .singleElement()
        .satisfies(
            event -> assertThat(event.getFormattedMessage()).contains("-XX:TieredStopAtLevel"));
  }

  @Test
  void refusesVectorsWithoutTheModuleAndNamesTheFlag() {
    assertThatThrownBy(() -> new KernelChoice(false, true).kernels("vector"))
        .isInstanceOf(BackendException.class)
        .hasMessageContaining("--add-modules=jdk.incubator.vector");
  }

  @Test
  @EnabledIf(
      value = "dev.lily.engine.backend.cpu.KernelPaths#hasVector",
      disabledReason = "jdk.incubator.vector is not in this JVM")
  void takesVectorsThatAreAskedForEvenWithoutTheOptimizingCompiler() {
    assertThat(new KernelChoice(true, false).kernels("vector").detail()).startsWith("vector ");
    assertThat(log.list).isEmpty();
  }

  @Test
  void takesScalarKernelsThatAreAskedForInSilence() {
    assertThat(new KernelChoice(true, true).kernels("scalar").detail()).isEqualTo("scalar");
    assertThat(log.list).isEmpty();
  }

  @Test
  void refusesAnotherWord() {
    assertThatThrownBy(() -> new KernelChoice(true, true).kernels("simd"))
        .isInstanceOf(BackendException.class)
        .hasMessage("kernels is 'simd'; it must be auto, vector or scalar");
  }
}
