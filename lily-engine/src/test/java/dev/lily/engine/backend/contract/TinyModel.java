package dev.lily.engine.backend.contract;

import dev.lily.engine.backend.AttentionOperands;
import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.ComputePass;
import dev.lily.engine.backend.DeviceInfo;
import dev.lily.engine.backend.DeviceState;
import dev.lily.engine.backend.ExpertsOperands;
import dev.lily.engine.backend.GatedDeltaOperands;
import dev.lily.engine.backend.LogitsOperands;
import dev.lily.engine.backend.Matrix;
import dev.lily.engine.backend.ModelShape;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.PendingPass;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.StackedProjection;
import dev.lily.engine.backend.StateLayout;
import dev.lily.engine.backend.Tensor;
import dev.lily.engine.backend.contract.TestMatrix.Format;
import java.util.List;

/**
 * Three random layers that use every verb: delta rule, attention, delta rule, each with experts.
 */
public final class TinyModel implements AutoCloseable {
  public static final int VOCABULARY = 100;
  public static final int PAGE_TOKENS = 16;
  static final int NUM_PAGES = 64;
  public static final PassLimits LIMITS = new PassLimits(64, 8, 64, 200);

  private static final int HIDDEN = 64;
  private static final float EPS = 1e-6f;

  private final Values random = new Values(2025);
  private final Backend backend;
  private final Form form;
  private final DeviceState state;
  private final Matrix embedding;
  private final Tensor x;
  private final Tensor n;
  private final Tensor branch;
  private final Tensor rows;
  private final Layer[] layers;
  private final LogitsOperands head;
  private final Tensor lastGain;

  /** Shapes and formats. */
  public enum Form {
    /** As a checkpoint has them: heads and pages of whole blocks, experts of one format. */
    REGULAR(32, Format.AFFINE_8, Format.AFFINE_4),
    /**
     * Heads that no block divides and experts of two formats, for a back end's plainest kernels.
     */
    IRREGULAR(36, Format.BF16, Format.AFFINE_8);

    private final int headDim;
    private final Format attentionOutput;
    private final Format down;

    Form(int headDim, Format attentionOutput, Format down) {
      this.headDim = headDim;
      this.attentionOutput = attentionOutput;
      this.down = down;
    }
  }

  private record Layer(
      Tensor mixerGain,
      StackedProjection inputs,
      GatedDeltaOperands delta,
      AttentionOperands attention,
      Tensor y,
      Matrix output,
      Tensor expertsGain,
      ExpertsOperands experts) {}

  public TinyModel(Backend backend) {
    this(backend, Form.REGULAR);
  }

  public TinyModel(Backend backend, Form form) {
    this.backend = backend;
    this.form = form;
    embedding = matrix(Format.AFFINE_4, 1, 128, HIDDEN);
    x = tensor(HIDDEN);
    n = tensor(HIDDEN);
    branch = tensor(HIDDEN);
    rows = tensor(HIDDEN);
    layers = new Layer[] {delta(0), attention(), delta(1)};
    lastGain = gain(HIDDEN);
    head =
        new LogitsOperands(
            rows,
            lastGain,
            EPS,
            matrix(Format.AFFINE_4, 1, 128, HIDDEN),
            tensor(HIDDEN),
            tensor(VOCABULARY));
    state =
        backend.openState(
            new StateLayout(
                1,
                2,
                form.headDim,
                PAGE_TOKENS,
                NUM_PAGES,
                2,
                4,
                128,
                4,
                16,
                16,
                16,
                8,
                VOCABULARY),
            new ModelShape(HIDDEN, 4, form.headDim, 64, 8, 2, 64, 64, VOCABULARY),
            LIMITS);
  }

  private Tensor tensor(int columns) {
    return backend.tensor(LIMITS.maxRows(), columns);
  }

  private Tensor gain(int columns) {
    return backend.constant(random.uniform(columns, 0.5, 1.5));
  }

  private Matrix matrix(Format format, int numMatrices, int rows, int columns) {
    return backend.matrix(
        TestMatrix.random(random, format, numMatrices, rows, columns, 0.3).source());
  }

  private Layer delta(int layer) {
    Tensor qkv = tensor(128);
    Tensor z = tensor(64);
    Tensor a = tensor(4);
    Tensor b = tensor(4);
    Tensor y = tensor(64);
    StackedProjection inputs =
        new StackedProjection(
            n,
            List.of(
                matrix(Format.AFFINE_4, 1, 128, HIDDEN),
                matrix(Format.AFFINE_4, 1, 64, HIDDEN),
                matrix(Format.AFFINE_4, 1, 4, HIDDEN),
                matrix(Format.AFFINE_4, 1, 4, HIDDEN)),
            List.of(qkv, z, a, b));
    GatedDeltaOperands operands =
        new GatedDeltaOperands(
            layer,
            2,
            4,
            16,
            16,
            4,
            qkv,
            z,
            a,
            b,
            backend.constant(random.uniform(128 * 4, -0.7, 0.7)),
            backend.constant(random.uniform(4, -1, 1)),
            backend.constant(random.uniform(4, -1, 1)),
            gain(16),
            EPS,
            y);
    return new Layer(
        gain(HIDDEN),
        inputs,
        operands,
        null,
        y,
        matrix(Format.AFFINE_4, 1, HIDDEN, 64),
        gain(HIDDEN),
        experts());
  }

  private Layer attention() {
    int headDim = form.headDim;
    Tensor queryAndGate = tensor(8 * headDim);
    Tensor key = tensor(2 * headDim);
    Tensor value = tensor(2 * headDim);
    Tensor y = tensor(4 * headDim);
    StackedProjection inputs =
        new StackedProjection(
            n,
            List.of(
                matrix(Format.AFFINE_4, 1, 8 * headDim, HIDDEN),
                matrix(Format.BF16, 1, 2 * headDim, HIDDEN),
                matrix(Format.F32, 1, 2 * headDim, HIDDEN)),
            List.of(queryAndGate, key, value));
    AttentionOperands operands =
        new AttentionOperands(
            0,
            4,
            2,
            headDim,
            8,
            10_000,
            queryAndGate,
            key,
            value,
            gain(headDim),
            gain(headDim),
            EPS,
            tensor(4 * headDim),
            tensor(4 * headDim),
            y);
    return new Layer(
        gain(HIDDEN),
        inputs,
        null,
        operands,
        y,
        matrix(form.attentionOutput, 1, HIDDEN, 4 * headDim),
        gain(HIDDEN),
        experts());
  }

  private ExpertsOperands experts() {
    return new ExpertsOperands(
        2,
        n,
        matrix(Format.AFFINE_8, 1, 8, HIDDEN),
        matrix(Format.AFFINE_4, 8, 64, HIDDEN),
        matrix(Format.AFFINE_4, 8, 64, HIDDEN),
        matrix(form.down, 8, HIDDEN, 64),
        matrix(Format.AFFINE_4, 1, 64, HIDDEN),
        matrix(Format.AFFINE_4, 1, 64, HIDDEN),
        matrix(Format.AFFINE_4, 1, HIDDEN, 64),
        matrix(Format.AFFINE_8, 1, 1, HIDDEN),
        tensor(8),
        branch);
  }

  /** What the model runs on. */
  public DeviceInfo device() {
    return backend.device();
  }

  public DeviceState state() {
    return state;
  }

  /**
   * Runs the plan, samples where it says so, and waits. Without logits a pass may be one that the
   * back end kept, as in a decode loop.
   *
   * @param logits null if not wanted
   */
  public PendingPass forward(RowPlan plan, float[] logits) {
    PendingPass pass = logits == null ? replay(plan) : null;
    if (pass == null) {
      pass = record(plan, logits);
    }
    pass.await();
    return pass;
  }

  /** Submits a pass that the back end kept; null if it has none for this plan. */
  public PendingPass replay(RowPlan plan) {
    return backend.replay(plan, state);
  }

  /** Records the pass verb by verb, and submits it. */
  public PendingPass record(RowPlan plan, float[] logits) {
    ComputePass pass = backend.begin(plan, state);
    pass.embed(embedding, x);
    Tensor before = null;
    for (Layer layer : layers) {
      pass.addNormalize(x, before, layer.mixerGain, EPS, n);
      pass.projectStack(layer.inputs);
      if (layer.delta != null) {
        pass.gatedDelta(layer.delta);
      } else {
        pass.prepareAttention(layer.attention);
        pass.attend(layer.attention);
      }
      pass.project(layer.y, layer.output, branch);
      pass.addNormalize(x, branch, layer.expertsGain, EPS, n);
      pass.experts(layer.experts);
      before = branch;
    }
    pass.gatherRows(x, branch, rows);
    pass.logits(head);
    pass.sample(head.logits());
    if (logits != null) {
      pass.copyOut(head.logits(), 0, plan.numLogitRows(), logits);
    }
    return pass.submit();
  }

  @Override
  public void close() {
    state.close();
    backend.close();
  }
}
