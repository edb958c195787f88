package dev.lily.metal.check;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.metal.device.MetalDouble;
import dev.lily.metal.device.MetalDoubleExtension;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** The check for real Macs, on the double: it must see what is right and what is wrong. */
@ExtendWith(MetalDoubleExtension.class)
class MetalCheckTest {
  private static final String REFUSED = "MTLCommandBufferErrorDomain";

  private final ByteArrayOutputStream printed = new ByteArrayOutputStream();

  @BeforeEach
  void useKernels(MetalDouble metal) {
    metal.useKernels();
  }

  /** What the steps print, details left out. */
  private List<String> results(int failures, String... steps) {
    PrintStream out = new PrintStream(printed, true, StandardCharsets.UTF_8);
    assertThat(new MetalCheck(out, true).run(List.of(steps))).isEqualTo(failures);
    return printed
        .toString(StandardCharsets.UTF_8)
        .lines()
        .filter(line -> !line.startsWith(" "))
        .toList();
  }

  @Test
  void passesEveryStepOfASoundMachine() {
    List<String> results =
        results(0, "device", "selectors", "sources", "kernels", "dispatches", "memory", "watchdog");
    assertThat(results).hasSize(9).allMatch(line -> line.startsWith("PASS  "));
    assertThat(results).contains("PASS  device: Metal double");
    assertThat(printed.toString(StandardCharsets.UTF_8))
        .contains("working set, at most    49152 MiB")
        .containsPattern("norm_matvec_q4_bf16_o4 +\\d+ +\\d+ +\\d");
  }

  @Test
  void asksForEveryMessageOfTheTable() {
    assertThat(results(0, "selectors"))
        .singleElement()
        .asString()
        .matches("PASS {2}selectors: (\\d+) messages understood, the types of \\1 compared");
  }

  @Test
  void leavesOutALanguageThatTheSystemIsTooOldFor(MetalDouble metal) {
    metal.set("macos", 15);
    metal.set("language", (3 << 16) + 2);
    assertThat(results(0, "sources"))
        .containsExactly(
            "PASS  sources as MSL_3_1: 7 compiled",
            "PASS  sources as MSL_3_2: 7 compiled",
            "SKIP  sources as MSL_4_0: this version needs macOS 26");
  }

  @Test
  void failsWhereNoGpuIsSeen(MetalDouble metal) {
    metal.failNext("defaultDevice");
    metal.failNext("allDevices");
    assertThat(results(1, "device"))
        .singleElement()
        .asString()
        .startsWith("FAIL  device: ")
        .contains("this process sees none");
  }

  @Test
  void failsWhereTheCompilerRefusesASource(MetalDouble metal) {
    metal.fail("library", 2, "MTLLibraryErrorDomain", 3, "elementwise.metal:7: error: no");
    assertThat(results(1, "sources")).contains("FAIL  sources as MSL_3_1: 1 of 7 refused");
    assertThat(printed.toString(StandardCharsets.UTF_8)).contains("elementwise.metal:7: error: no");
  }

  @Test
  void failsWhereAKernelCannotBeMade(MetalDouble metal) {
    metal.failNext("pipeline");
    assertThat(results(1, "kernels"))
        .singleElement()
        .asString()
        .startsWith("FAIL  kernels: ")
        .endsWith(", 1 problems");
  }

  @Test
  void failsWhereTheWatchdogEndsAPass(MetalDouble metal) {
    metal.fail("run", 1, REFUSED, 2, "Caused GPU Timeout Error (IOGPUCommandBufferErrorTimeout)");
    assertThat(results(1, "watchdog"))
        .singleElement()
        .asString()
        .contains("it ran too long for the watchdog");
  }

  @Test
  void goesOnAfterAFailure(MetalDouble metal) {
    metal.failNext("queue");
    assertThat(results(1, "dispatches", "device"))
        .hasSize(2)
        .last()
        .isEqualTo("PASS  device: Metal double");
  }
}
