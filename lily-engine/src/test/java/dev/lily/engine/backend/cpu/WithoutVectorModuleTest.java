package dev.lily.engine.backend.cpu;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.PageTable;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.contract.TinyModel;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

/** A JVM without the incubator module runs the back end: no class that needs it is loaded. */
class WithoutVectorModuleTest {
  @Test
  void computesWithScalarKernelsAndNamesTheFlag() throws IOException, InterruptedException {
    String classPath =
        System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
    Process process =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-cp",
                classPath,
                Program.class.getName())
            .redirectErrorStream(true)
            .start();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor()).as(output).isZero();
    assertThat(output)
        .containsOnlyOnce("--add-modules=jdk.incubator.vector")
        .contains("detail: scalar, 2 threads", "finite: true");
  }

  /** Runs in the other JVM. */
  static final class Program {
    public static void main(String[] args) {
      try (TinyModel model =
          new TinyModel(new CpuBackendProvider().open(new BackendOptions(2, "auto")))) {
        PageTable pages = new PageTable();
        pages.add(0);
        model.state().clearSlot(0);
        RowPlan plan = new RowPlan(TinyModel.LIMITS);
        plan.add(new int[] {1, 2, 3}, 0, 3, 0, pages, 0, 1, RowPlan.NO_SAMPLING);
        float[] logits = new float[TinyModel.VOCABULARY];
        model.forward(plan, logits);
        boolean finite = true;
        for (float logit : logits) {
          finite &= Float.isFinite(logit);
        }
        System.out.println("detail: " + model.device().detail());
        System.out.println("finite: " + finite);
      }
    }
  }
}
