package dev.lily.engine.backend.contract;

import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.ComputePass;
import dev.lily.engine.backend.DeviceState;
import dev.lily.engine.backend.Matrix;
import dev.lily.engine.backend.ModelShape;
import dev.lily.engine.backend.PageTable;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.PendingPass;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.StateLayout;
import dev.lily.engine.backend.Tensor;
import java.util.function.Consumer;

/**
 * A back end with one state, and short ways to bring numbers into tensors and out of them. Numbers
 * come in through {@code embed}: row {@code r} of every plan made here has token {@code r}.
 */
final class Rig implements AutoCloseable {
  static final PassLimits LIMITS = new PassLimits(64, 8, 64, 1600);

  /** Small sizes for tests that need none in particular. */
  static final ModelShape SHAPE = new ModelShape(64, 4, 32, 64, 8, 2, 32, 32, 100);

  static final StateLayout LAYOUT =
      new StateLayout(1, 2, 32, 16, 8, 1, 4, 128, 4, 16, 16, 8, 8, 100);

  private final Backend backend;
  private final StateLayout layout;
  private final ModelShape shape;
  private final RowPlan plan = new RowPlan(LIMITS);
  private DeviceState state;

  Rig(Backend backend) {
    this(backend, LAYOUT, SHAPE);
  }

  Rig(Backend backend, StateLayout layout, ModelShape shape) {
    this.backend = backend;
    this.layout = layout;
    this.shape = shape;
  }

  Backend backend() {
    return backend;
  }

  Matrix load(TestMatrix matrix) {
    return backend.matrix(matrix.source());
  }

  /** The state, opened when first asked for: after the weights are loaded. */
  DeviceState state() {
    if (state == null) {
      state = backend.openState(layout, shape, LIMITS);
    }
    return state;
  }

  Tensor tensor(int columns) {
    return backend.tensor(LIMITS.maxRows(), columns);
  }

  RowPlan plan() {
    return plan;
  }

  /** A plan of one sequence in slot 0, all rows with logits. */
  RowPlan rows(int count) {
    plan.clear();
    int[] tokens = new int[count];
    for (int i = 0; i < count; i++) {
      tokens[i] = i;
    }
    plan.add(tokens, 0, count, 0, new PageTable(), 0, count, RowPlan.NO_SAMPLING);
    return plan;
  }

  /** Writes rows into a tensor of the pass. */
  void fill(ComputePass pass, float[] rows, Tensor tensor) {
    pass.embed(load(TestMatrix.rows(rows, tensor.columns())), tensor);
  }

  /** Runs one pass over the current plan. */
  PendingPass run(Consumer<ComputePass> verbs) {
    ComputePass pass = backend.begin(plan, state());
    verbs.accept(pass);
    PendingPass pending = pass.submit();
    pending.await();
    return pending;
  }

  /** Runs one pass and reads a tensor's first rows. */
  float[] read(Tensor tensor, int rows, Consumer<ComputePass> verbs) {
    float[] out = new float[rows * tensor.columns()];
    run(
        pass -> {
          verbs.accept(pass);
          pass.copyOut(tensor, 0, rows, out);
        });
    return out;
  }

  @Override
  public void close() {
    if (state != null) {
      state.close();
    }
    backend.close();
  }
}
