package dev.lily.engine.backend.cpu;

import dev.lily.engine.backend.AttentionOperands;
import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.ComputePass;
import dev.lily.engine.backend.ExpertsOperands;
import dev.lily.engine.backend.GatedDeltaOperands;
import dev.lily.engine.backend.LogitsOperands;
import dev.lily.engine.backend.Matrix;
import dev.lily.engine.backend.ModelShape;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.PendingPass;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.StackedProjection;
import dev.lily.engine.backend.Tensor;
import dev.lily.engine.backend.cpu.kernel.CpuMatrix;
import dev.lily.engine.backend.cpu.kernel.CpuTensor;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Runs each verb at once and forwards it to its step. One object serves all passes of a state, one
 * after the other.
 */
final class CpuPass implements ComputePass {
  private final CpuState state;
  private final RowSteps rowSteps;
  private final Projections projections;
  private final GatedDeltaStep gatedDelta;
  private final PrepareAttentionStep prepareAttention;
  private final AttendStep attend;
  private final ExpertsStep experts;
  private final SampleStep sample;
  private final CpuPendingPass[] results;
  private final PassLimits limits;
  private @Nullable RowPlan plan;
  private int passes;
  private long start;

  CpuPass(Compute compute, CpuState state, ModelShape shape, PassLimits limits) {
    this.state = state;
    this.limits = limits;
    rowSteps = new RowSteps(compute);
    projections = new Projections(compute);
    gatedDelta = new GatedDeltaStep(compute, state.slots(), state.layout());
    prepareAttention = new PrepareAttentionStep(compute, state.pages());
    attend = new AttendStep(compute, state.pages(), shape, limits);
    experts = new ExpertsStep(compute, projections, shape);
    sample =
        new SampleStep(
            compute, state.samplers(), state.layout().vocabularySize(), limits.maxSequences());
    results =
        new CpuPendingPass[] {
          new CpuPendingPass(limits.maxLogitRows()), new CpuPendingPass(limits.maxLogitRows())
        };
  }

  void begin(RowPlan plan) {
    if (plan.numRows() > limits.maxRows()
        || plan.numSequences() > limits.maxSequences()
        || plan.numLogitRows() > limits.maxLogitRows()) {
      throw new BackendException(
          "A plan of %d rows, %d sequences and %d logit rows exceeds %s"
              .formatted(plan.numRows(), plan.numSequences(), plan.numLogitRows(), limits));
    }
    this.plan = plan;
    passes++;
    result().clear(plan.numLogitRows());
    prepareAttention.begin();
    start = System.nanoTime();
  }

  private CpuPendingPass result() {
    return results[passes & 1];
  }

  private RowPlan plan() {
    return Objects.requireNonNull(plan, "the pass was submitted");
  }

  @Override
  public void embed(Matrix embedding, Tensor x) {
    RowPlan rows = plan();
    for (int r = 0; r < rows.numRows(); r++) {
      int token = rows.token(r);
      if (token == RowPlan.PREVIOUS_TOKEN) {
        token = previousToken(rows.samplingSlot(rows.sequenceOf(r)));
      }
      rowSteps.embed(CpuMatrix.of(embedding), token, CpuTensor.values(x), r);
    }
  }

  private int previousToken(int slot) {
    int token = slot == RowPlan.NO_SAMPLING ? -1 : state.samplers()[slot].lastToken();
    if (token < 0) {
      throw new BackendException(
          "A row asks for the token that sampling slot %d chose last; it has chosen none"
              .formatted(slot));
    }
    return token;
  }

  @Override
  public void addNormalize(Tensor x, @Nullable Tensor branch, Tensor gain, float eps, Tensor n) {
    rowSteps.addNormalize(
        CpuTensor.values(x),
        branch == null ? null : CpuTensor.values(branch),
        CpuTensor.values(gain),
        eps,
        CpuTensor.values(n),
        plan().numRows(),
        x.columns());
  }

  @Override
  public void projectStack(StackedProjection operands) {
    Tensor input = operands.input();
    projections.input(CpuTensor.values(input), plan().numRows(), input.columns());
    for (int i = 0; i < operands.matrices().size(); i++) {
      add(operands.matrices().get(i), operands.outputs().get(i));
    }
    projections.run();
  }

  @Override
  public void project(Tensor y, Matrix matrix, Tensor out) {
    projections.input(CpuTensor.values(y), plan().numRows(), y.columns());
    add(matrix, out);
    projections.run();
  }

  private void add(Matrix matrix, Tensor out) {
    projections.add(CpuMatrix.of(matrix), out.columns(), CpuTensor.values(out), out.columns());
  }

  @Override
  public void gatedDelta(GatedDeltaOperands operands) {
    gatedDelta.run(operands, plan());
  }

  @Override
  public void prepareAttention(AttentionOperands operands) {
    prepareAttention.run(operands, plan());
  }

  @Override
  public void attend(AttentionOperands operands) {
    attend.run(operands, plan());
  }

  @Override
  public void experts(ExpertsOperands operands) {
    experts.run(operands, plan().numRows());
  }

  @Override
  public void gatherRows(Tensor x, Tensor branch, Tensor rows) {
    rowSteps.gather(
        plan(), CpuTensor.values(x), CpuTensor.values(branch), CpuTensor.values(rows), x.columns());
  }

  @Override
  public void logits(LogitsOperands operands) {
    int rows = plan().numLogitRows();
    if (rows == 0) {
      return;
    }
    int columns = operands.rows().columns();
    float[] normalized = CpuTensor.values(operands.normalized());
    rowSteps.addNormalize(
        CpuTensor.values(operands.rows()),
        null,
        CpuTensor.values(operands.gain()),
        operands.eps(),
        normalized,
        rows,
        columns);
    projections.input(normalized, rows, columns);
    add(operands.lmHead(), operands.logits());
    projections.run();
  }

  @Override
  public void sample(Tensor logits) {
    int vocabularySize = state.layout().vocabularySize();
    if (logits.columns() != vocabularySize) {
      throw new BackendException(
          "Logits have %d columns; the state was opened for %d tokens"
              .formatted(logits.columns(), vocabularySize));
    }
    if (plan().numLogitRows() > 0) {
      sample.run(CpuTensor.values(logits), plan(), result());
    }
  }

  @Override
  public void copyOut(Tensor source, int firstRow, int numRows, float[] destination) {
    int columns = source.columns();
    System.arraycopy(
        CpuTensor.values(source), firstRow * columns, destination, 0, numRows * columns);
  }

  @Override
  public PendingPass submit() {
    plan();
    plan = null;
    CpuPendingPass result = result();
    result.ranFor(System.nanoTime() - start);
    return result;
  }
}
