package dev.lily.metal;

import static dev.lily.metal.kernel.ElementType.BF16;
import static dev.lily.metal.kernel.ElementType.F32;
import static dev.lily.metal.kernel.MetalTensor.RowOrder.LOGITS;
import static dev.lily.metal.kernel.MetalTensor.RowOrder.PLAN;

import dev.lily.engine.backend.AttentionOperands;
import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.ComputePass;
import dev.lily.engine.backend.ExpertsOperands;
import dev.lily.engine.backend.GatedDeltaOperands;
import dev.lily.engine.backend.LogitsOperands;
import dev.lily.engine.backend.Matrix;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.PendingPass;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.StackedProjection;
import dev.lily.engine.backend.Tensor;
import dev.lily.metal.device.MetalBuffer;
import dev.lily.metal.kernel.DevicePlan;
import dev.lily.metal.kernel.ElementType;
import dev.lily.metal.kernel.KernelEncoder;
import dev.lily.metal.kernel.MetalKernels;
import dev.lily.metal.kernel.MetalMatrix;
import dev.lily.metal.kernel.MetalTensor;
import dev.lily.metal.kernel.Recording;
import dev.lily.metal.kernel.Region;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Records each verb as dispatches of a concurrent encoder. The residual stream, logits and
 * constants are fp32, all other activations bf16. One object records all passes of a state, one
 * after the other; two of them may be in flight. Decode steps are kept and sent again.
 */
final class MetalPass implements ComputePass {
  private final MetalState state;
  private final MetalKernels kernels;
  private final PassLimits limits;
  private final SampledRows sampled;
  private final Products products;
  private @Nullable RowPlan rowPlan;
  private MetalPendingPass pending;
  private DevicePlan plan;
  private Recording recording;
  private @Nullable RecordedStep step;
  private double work;
  private int passes;
  private int numDispatches;
  private int numBarriers;

  MetalPass(MetalState state, MetalKernels kernels, PassLimits limits) {
    this.state = state;
    this.kernels = kernels;
    this.limits = limits;
    products = new Products(kernels);
    sampled = new SampledRows(state.sampling(), limits);
    pending = state.pending(0);
    plan = pending.plan();
    recording = pending.recording();
  }

  void begin(RowPlan rows) {
    start(rows);
    boolean isKept = plan.numPrefillRows() == 0 && !state.hasCopies();
    step = isKept ? pending.step(plan.numDecodeRows()) : null;
    recording = step == null ? pending.recording() : step.record();
    kernels.encoder().open(recording);
    state.recordCopies();
  }

  /** Makes ready for a pass. */
  private void start(RowPlan rows) {
    if (rows.numRows() > limits.maxRows()
        || rows.numSequences() > limits.maxSequences()
        || rows.numLogitRows() > limits.maxLogitRows()) {
      throw new BackendException(
          "A plan of %d rows, %d sequences and %d logit rows exceeds %s"
              .formatted(rows.numRows(), rows.numSequences(), rows.numLogitRows(), limits));
    }
    if (pending.isRecording()) {
      pending.discard(); // its recording failed half-way
      passes--;
    }
    pending = state.pending(passes + 1);
    products.reset();
    work = 0;
    pending.begin(rows.numRows(), rows.numLogitRows());
    passes++;
    plan = pending.plan();
    plan.fill(rows);
    rowPlan = rows;
  }

  /**
   * Runs a decode step that was recorded with as many rows and as many results; null if none was.
   * Nothing is recorded anew then, only the plan is filled.
   */
  @Nullable PendingPass replay(RowPlan rows) {
    if (state.hasCopies()
        || rows.numSequences() > limits.maxSequences()
        || !DevicePlan.isDecode(rows)) {
      return null;
    }
    MetalPendingPass next = pending.isRecording() ? pending : state.pending(passes + 1);
    sampled.begin(rows);
    sampled.round(rows, 0);
    if (!next.step(rows.numSequences()).suits(rows.numLogitRows(), sampled)) {
      return null;
    }
    start(rows);
    plan.requirePages(rows);
    sampled.enter(rows, 0, plan, pending);
    RecordedStep known = pending.step(rows.numSequences());
    known.recording().adapt(plan);
    pending.commands().commit(known.recording().dispatches(), 0);
    pending.submitted();
    rowPlan = null;
    numDispatches = known.numDispatches();
    numBarriers = known.numBarriers();
    return pending;
  }

  private RowPlan rowPlan() {
    return Objects.requireNonNull(rowPlan, "the pass was submitted");
  }

  /** Records a norm that waits for products that do not come next. */
  private void flush() {
    products.flush();
  }

  private static boolean isOneDecodeRow(int prefillRows, int decodeRows) {
    return prefillRows == 0 && decodeRows == 1;
  }

  private Region narrow(Tensor tensor, String operand, int columns) {
    MetalTensor metal = MetalTensor.of(tensor).require(operand, plan.numRows(), columns);
    return kernels.elementwise().as(BF16, metal, plan.numRows());
  }

  private static Region written(Tensor tensor, String operand, int rows, int columns) {
    return MetalTensor.of(tensor).require(operand, rows, columns).written(BF16, PLAN);
  }

  private static Region constant(Tensor tensor, String operand, int columns) {
    return MetalTensor.of(tensor).require(operand, 1, columns).current();
  }

  @Override
  public void embed(Matrix embedding, Tensor x) {
    flush();
    MetalMatrix matrix = MetalMatrix.of(embedding);
    RowPlan rows = rowPlan();
    for (int r = 0; r < rows.numRows(); r++) {
      if (rows.token(r) != RowPlan.PREVIOUS_TOKEN
          && (rows.token(r) < 0 || rows.token(r) >= matrix.rows())) {
        throw new BackendException(
            "Token id is %d; embedding '%s' has %d rows"
                .formatted(rows.token(r), matrix.name(), matrix.rows()));
      }
    }
    Region out =
        MetalTensor.of(x).require("x", plan.numRows(), matrix.columns()).written(F32, PLAN);
    kernels.elementwise().embed(plan, matrix, state.sampling().device().lastTokens(), out);
  }

  @Override
  public void addNormalize(Tensor x, @Nullable Tensor branch, Tensor gain, float eps, Tensor n) {
    flush();
    int rows = plan.numRows();
    int columns = x.columns();
    Region added = branch == null ? null : narrow(branch, "branch", columns);
    Region residual = kernels.elementwise().as(F32, MetalTensor.of(x), rows);
    Region gains = constant(gain, "gain", columns);
    Region normed = written(n, "n", rows, columns);
    if (isOneDecodeRow(plan.numPrefillRows(), plan.numDecodeRows())) {
      products.defer(MetalTensor.of(x), added, gains, eps, normed);
    } else {
      kernels.norm().addNorm(rows, columns, residual, added, gains, eps, normed);
    }
  }

  @Override
  public void projectStack(StackedProjection operands) {
    Tensor from = operands.input();
    Region input = narrow(from, "input", from.columns());
    products.begin();
    for (int m = 0; m < operands.matrices().size(); m++) {
      add(operands.matrices().get(m), operands.outputs().get(m), from);
    }
    multiply(input, BF16);
  }

  @Override
  public void project(Tensor y, Matrix matrix, Tensor out) {
    flush();
    Region input = narrow(y, "y", y.columns());
    products.begin();
    add(matrix, out, y);
    multiply(input, BF16);
  }

  private void add(Matrix matrix, Tensor out, Tensor input) {
    Region to = written(out, "out", plan.numRows(), out.columns());
    products.add(matrix, to, out.columns(), input);
  }

  private void multiply(Region input, ElementType type) {
    products.multiply(plan.numPrefillRows(), plan.numDecodeRows(), input, type);
    spend(products.work(plan.numRows()));
  }

  @Override
  public void gatedDelta(GatedDeltaOperands o) {
    flush();
    int heads = o.numValueHeads();
    int valueColumns = heads * o.valueDim();
    int channels = 2 * o.numKeyHeads() * o.keyDim() + valueColumns;
    kernels
        .deltaRule()
        .run(
            plan,
            o,
            state.deltaRule(),
            narrow(o.qkv(), "qkv", channels),
            narrow(o.z(), "z", valueColumns),
            narrow(o.a(), "a", heads),
            narrow(o.b(), "b", heads),
            written(o.y(), "y", plan.numRows(), valueColumns));
    spend(Work.gatedDelta(plan.numRows(), o));
  }

  private Region queryGate(AttentionOperands o) {
    return narrow(o.queryAndGate(), "queryAndGate", 2 * o.numHeads() * o.headDim());
  }

  private Region key(AttentionOperands o) {
    return narrow(o.key(), "key", o.numKeyValueHeads() * o.headDim());
  }

  private Region value(AttentionOperands o) {
    return narrow(o.value(), "value", o.numKeyValueHeads() * o.headDim());
  }

  private Region query(AttentionOperands o) {
    return written(o.query(), "query", plan.numRows(), o.numHeads() * o.headDim());
  }

  @Override
  public void prepareAttention(AttentionOperands o) {
    flush();
    plan.requirePages(rowPlan());
    kernels
        .attention()
        .prepare(plan, o, state.attention(), queryGate(o), key(o), value(o), query(o));
  }

  @Override
  public void attend(AttentionOperands o) {
    flush();
    kernels
        .attention()
        .attend(
            plan,
            o,
            state.attention(),
            queryGate(o),
            key(o),
            value(o),
            query(o),
            written(o.y(), "y", plan.numRows(), o.numHeads() * o.headDim()));
    spend(Work.attend(plan.numAttended(), o));
  }

  @Override
  public void experts(ExpertsOperands o) {
    int hidden = o.n().columns();
    Region n = narrow(o.n(), "n", hidden);
    int experts = o.router().rows();
    Region logits =
        MetalTensor.of(o.routerLogits())
            .require("routerLogits", plan.numRows(), experts)
            .written(F32, PLAN);
    products.begin();
    products.add(o.router(), logits, experts, o.n());
    products.add(o.sharedExpertGate(), state.experts().sharedGate(), 1, o.n());
    products.multiply(plan.numPrefillRows(), plan.numDecodeRows(), n, F32);
    kernels
        .experts()
        .run(plan, o, state.experts(), logits, n, written(o.out(), "out", plan.numRows(), hidden));
    spend(Work.experts(plan.numRows(), o));
  }

  @Override
  public void gatherRows(Tensor x, Tensor branch, Tensor rows) {
    flush();
    if (plan.numLogitRows() == 0) {
      return;
    }
    int columns = x.columns();
    Region added = narrow(branch, "branch", columns);
    Region residual = kernels.elementwise().as(F32, MetalTensor.of(x), plan.numRows());
    Region out =
        MetalTensor.of(rows).require("rows", plan.numLogitRows(), columns).written(F32, LOGITS);
    kernels.elementwise().gatherRows(plan, columns, residual, added, out);
  }

  @Override
  public void logits(LogitsOperands o) {
    flush();
    int count = plan.numLogitRows();
    if (count == 0) {
      return;
    }
    int columns = o.rows().columns();
    Region rows = kernels.elementwise().as(F32, MetalTensor.of(o.rows()), count);
    Region normalized =
        MetalTensor.of(o.normalized()).require("normalized", count, columns).written(BF16, LOGITS);
    Region gains = constant(o.gain(), "gain", columns);
    Region logits =
        MetalTensor.of(o.logits())
            .require("logits", count, o.logits().columns())
            .written(F32, LOGITS);
    products.begin();
    products.add(o.lmHead(), logits, o.logits().columns(), o.rows());
    if (isOneDecodeRow(plan.numPrefillLogits(), plan.numDecodeLogits())) {
      products.defer(MetalTensor.of(o.rows()), null, gains, o.eps(), normalized);
    } else {
      kernels.norm().addNorm(count, columns, rows, null, gains, o.eps(), normalized);
    }
    products.multiply(plan.numPrefillLogits(), plan.numDecodeLogits(), normalized, F32);
  }

  @Override
  public void sample(Tensor logits) {
    flush();
    RowPlan rows = rowPlan();
    if (rows.numLogitRows() == 0) {
      return;
    }
    MetalTensor metal =
        MetalTensor.of(logits)
            .require("logits", rows.numLogitRows(), state.layout().vocabularySize());
    Region values = kernels.elementwise().as(F32, metal, rows.numLogitRows());
    sampled.begin(rows);
    for (int round = 0; sampled.round(rows, round); round++) {
      sampled.enter(rows, round, plan, pending);
      kernels
          .sampling()
          .sample(
              plan,
              values,
              sampled.first(),
              sampled.count(),
              state.sampling().device(),
              sampled.reportsLogprobs(),
              pending.results());
    }
  }

  @Override
  public void copyOut(Tensor source, int firstRow, int numRows, float[] destination) {
    flush();
    rowPlan();
    MetalTensor tensor = MetalTensor.of(source);
    if (firstRow < 0
        || numRows < 0
        || firstRow + numRows > tensor.rows()
        || destination.length < numRows * tensor.columns()) {
      throw new BackendException(
          "Copying rows %d to %d of %s to %d values"
              .formatted(firstRow, firstRow + numRows, tensor, destination.length));
    }
    step = null; // nobody would read what a later step copies
    MetalBuffer copy = pending.copyOut(tensor, firstRow, numRows, destination);
    kernels.elementwise().copyOut(tensor.current(), copy, MetalPendingPass.bytes(tensor));
  }

  /**
   * Counts the work of a verb. A pass that reads prompts goes on in another command buffer when the
   * one at hand will take the GPU long enough; decode steps stay whole.
   */
  private void spend(double operations) {
    work += operations;
    if (plan.numPrefillRows() > 0 && state.budget().isSpent(work)) {
      flush();
      pending.commands().commit(recording.dispatches(), work);
      kernels.encoder().split();
      work = 0;
    }
  }

  @Override
  public PendingPass submit() {
    flush();
    RowPlan rows = rowPlan();
    rowPlan = null;
    KernelEncoder encoder = kernels.encoder();
    encoder.end();
    numDispatches = encoder.numDispatches();
    numBarriers = encoder.numBarriers();
    if (recording.dispatches().size() > 0 || pending.commands().size() == 0) {
      pending.commands().commit(recording.dispatches(), plan.numPrefillRows() > 0 ? work : 0);
    }
    pending.submitted();
    state.copiesSubmitted();
    if (step != null) {
      sampled.begin(rows);
      sampled.round(rows, 0);
      step.keep(rows.numLogitRows(), sampled, numDispatches, numBarriers);
    }
    return pending;
  }

  /** Dispatches of the last pass that was submitted. */
  int numDispatches() {
    return numDispatches;
  }

  /** Barriers of the last pass that was submitted. */
  int numBarriers() {
    return numBarriers;
  }

  /** Command buffers of the last pass that was submitted. */
  int numCommandBuffers() {
    return pending.commands().size();
  }
}
