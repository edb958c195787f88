package dev.lily.metal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.DType;
import dev.lily.engine.backend.DeviceState;
import dev.lily.engine.backend.Matrix;
import dev.lily.engine.backend.MatrixSource;
import dev.lily.engine.backend.ModelShape;
import dev.lily.engine.backend.PageTable;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.PendingPass;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.StateLayout;
import dev.lily.engine.backend.Tensor;
import dev.lily.metal.device.MetalGpu;
import dev.lily.metal.device.MetalGpuExtension;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** The first steps of a pass, from the embedding to a projection, with the numbers by hand. */
@ExtendWith(MetalGpuExtension.class)
class MetalPassTest {
  private static final StateLayout LAYOUT =
      new StateLayout(1, 1, 8, 8, 4, 1, 4, 24, 1, 8, 8, 2, 1, 16);
  private static final ModelShape SHAPE = new ModelShape(4, 1, 8, 8, 2, 1, 8, 8, 16);
  private static final PassLimits LIMITS = new PassLimits(4, 2, 4, 32);

  private static Matrix matrix(MetalBackend backend, Arena arena, int rows, float... values) {
    MemorySegment segment = arena.allocateFrom(ValueLayout.JAVA_FLOAT, values);
    int columns = values.length / rows;
    return backend.matrix(
        new MatrixSource.Dense("test", 1, rows, columns, DType.F32, 4L * values.length, segment));
  }

  @Test
  void embedsNormalizesAndProjects(MetalGpu gpu) {
    try (Arena arena = Arena.ofConfined();
        MetalBackend backend =
            (MetalBackend) new MetalBackendProvider().open(BackendOptions.DEFAULT)) {
      Matrix embedding = matrix(backend, arena, 2, 3, 4, 0, 0, 0, 0, 6, 8);
      Matrix projection = matrix(backend, arena, 1, 1, 2, 3, 4);
      Tensor gain = backend.constant(1, 1, 2, 1);
      Tensor x = backend.tensor(4, 4);
      Tensor n = backend.tensor(4, 4);
      Tensor out = backend.tensor(4, 1);
      RowPlan plan = new RowPlan(LIMITS);
      plan.add(new int[] {1, 0, 1}, 0, 3, 0, new PageTable(), 0, 0, RowPlan.NO_SAMPLING);
      float[] result = new float[3];
      float[] residual = new float[4];
      try (DeviceState state = backend.openState(LAYOUT, SHAPE, LIMITS)) {
        MetalPass pass = (MetalPass) backend.begin(plan, state);
        pass.embed(embedding, x);
        pass.addNormalize(x, null, gain, 0, n);
        pass.project(n, projection, out);
        pass.copyOut(out, 0, 3, result);
        pass.copyOut(x, 1, 1, residual);
        PendingPass pending = pass.submit();
        pending.await();
        assertThat(pending.deviceNanos()).isPositive();
        assertThat(pass.numDispatches()).isEqualTo(5);
        assertThat(pass.numBarriers()).isEqualTo(3);
      }
      // Rows are divided by the root of their mean square: 5 and 2.5.
      assertThat(residual).containsExactly(3, 4, 0, 0);
      assertThat(result).containsExactly(13.625f, 4.40625f, 13.625f);
    }
    assertThat(gpu.notes()).isEmpty();
  }
}
