package dev.lily.engine.backend.cpu;

import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.ExpertsOperands;
import dev.lily.engine.backend.ModelShape;
import dev.lily.engine.backend.cpu.kernel.CpuMatrix;
import dev.lily.engine.backend.cpu.kernel.CpuTensor;
import dev.lily.engine.backend.cpu.kernel.ElementwiseKernels;
import dev.lily.engine.backend.cpu.kernel.PackedMatrix;
import dev.lily.engine.backend.cpu.kernel.WorkerPool;

/**
 * Sparse experts. Rows are grouped by expert, so that an expert's weights are read once per pass;
 * the shared expert is one more group, of all rows. Contributions are kept apart until each row's
 * are summed in the order chosen.
 */
final class ExpertsStep {
  private static final int ROWS_PER_PART = 8;

  private final Compute compute;
  private final Projections projections;
  private final ExpertRouter router;
  private final ExpertStack routed;
  private final ExpertStack shared;
  private final Half expand;
  private final Half contract;
  private final Combine combine = new Combine();
  private final float[] sharedLogit;
  private final int numExperts;
  private final int hiddenSize;
  private int rows;
  private int numExpertsPerToken;
  private float[] out = {};

  ExpertsStep(Compute compute, Projections projections, ModelShape shape) {
    this.compute = compute;
    this.projections = projections;
    numExperts = shape.numExperts();
    hiddenSize = shape.hiddenSize();
    router = new ExpertRouter(compute, numExperts, shape.numExpertsPerToken());
    int assignments = Math.multiplyExact(compute.maxRows(), shape.numExpertsPerToken());
    routed = new ExpertStack(compute, assignments, shape.moeIntermediateSize(), hiddenSize);
    shared =
        new ExpertStack(compute, compute.maxRows(), shape.sharedIntermediateSize(), hiddenSize);
    sharedLogit = Compute.scratch(compute.maxRows());
    expand = new Half(true);
    contract = new Half(false);
  }

  /** fp32 elements of scratch per row. */
  static long elementsPerRow(ModelShape shape) {
    return shape.numExpertsPerToken()
            * ExpertStack.elementsPerPlace(shape.moeIntermediateSize(), shape.hiddenSize())
        + ExpertStack.elementsPerPlace(shape.sharedIntermediateSize(), shape.hiddenSize());
  }

  void run(ExpertsOperands operands, int rows) {
    CpuMatrix routerMatrix = CpuMatrix.of(operands.router());
    if (routerMatrix.rows() != numExperts) {
      throw new BackendException(
          "The router has %d experts; the state was opened for %d"
              .formatted(routerMatrix.rows(), numExperts));
    }
    this.rows = rows;
    numExpertsPerToken = operands.numExpertsPerToken();
    out = CpuTensor.values(operands.out());
    float[] routerLogits = CpuTensor.values(operands.routerLogits());
    projections.input(CpuTensor.values(operands.n()), rows, hiddenSize);
    projections.add(routerMatrix, numExperts, routerLogits, numExperts);
    projections.add(CpuMatrix.of(operands.sharedExpertGate()), 1, sharedLogit, 1);
    projections.run();
    router.route(routerLogits, rows, numExpertsPerToken);
    routed.begin(
        operands.gate(),
        operands.up(),
        operands.down(),
        projections,
        router.rowOf(),
        router.assignments());
    shared.begin(
        operands.sharedGate(),
        operands.sharedUp(),
        operands.sharedDown(),
        projections,
        projections.identity(),
        projections.identity());
    expand.dispatch();
    contract.dispatch();
    compute.pool().run(combine, Compute.ceilDiv(rows, ROWS_PER_PART));
  }

  /** One half of every expert: parts are ranges of outputs of one group of rows. */
  private final class Half implements WorkerPool.Task {
    private final boolean expanding;
    private final int[] endPart;
    private int outputsPerPart;

    Half(boolean expanding) {
      this.expanding = expanding;
      endPart = new int[numExperts + 1];
    }

    /** A whole number of units of either stack. */
    private int expandUnit() {
      int unit = routed.expandUnit();
      return shared.expandUnit() % unit == 0 ? shared.expandUnit() : unit * shared.expandUnit();
    }

    private int outputs(ExpertStack stack) {
      return expanding ? stack.width() : hiddenSize;
    }

    void dispatch() {
      int groups = router.numActive() + 1;
      int rowsPerGroup = Compute.ceilDiv(rows * (numExpertsPerToken + 1), groups);
      outputsPerPart =
          expanding
              ? Compute.outputsPerPart(2 * hiddenSize, rowsPerGroup, expandUnit())
              : Compute.outputsPerPart(routed.width(), rowsPerGroup, PackedMatrix.BLOCK_ROWS);
      int routedParts = Compute.ceilDiv(outputs(routed), outputsPerPart);
      for (int g = 0; g < groups - 1; g++) {
        endPart[g] = (g + 1) * routedParts;
      }
      int before = (groups - 1) * routedParts;
      endPart[groups - 1] = before + Compute.ceilDiv(outputs(shared), outputsPerPart);
      compute.pool().run(this, endPart[groups - 1]);
    }

    @Override
    public void run(int part, int worker) {
      int group = 0;
      while (endPart[group] <= part) {
        group++;
      }
      int firstPart = group == 0 ? 0 : endPart[group - 1];
      boolean sharedGroup = group == router.numActive();
      ExpertStack stack = sharedGroup ? shared : routed;
      int expert = sharedGroup ? 0 : router.expert(group);
      int first = sharedGroup ? 0 : router.first(expert);
      int count = sharedGroup ? rows : router.count(expert);
      int from = (part - firstPart) * outputsPerPart;
      int to = Math.min(outputs(stack), from + outputsPerPart);
      float[] tile = projections.tile(worker);
      if (expanding) {
        stack.expand(expert, first, count, from, to, tile);
      } else {
        stack.contract(expert, first, count, from, to, tile);
      }
    }
  }

  /** Weighted sum of each row's contributions. */
  private final class Combine implements WorkerPool.Task {
    @Override
    public void run(int part, int worker) {
      ElementwiseKernels elementwise = compute.kernels().elementwise();
      int end = Math.min(rows, (part + 1) * ROWS_PER_PART);
      for (int r = part * ROWS_PER_PART; r < end; r++) {
        int target = r * hiddenSize;
        for (int rank = 0; rank < numExpertsPerToken; rank++) {
          int assignment = r * numExpertsPerToken + rank;
          int source = assignment * hiddenSize;
          float weight = router.weight(assignment);
          if (rank == 0) {
            elementwise.scale(routed.contributions(), source, weight, out, target, hiddenSize);
          } else {
            elementwise.addScaled(routed.contributions(), source, weight, out, target, hiddenSize);
          }
        }
        float weight = (float) (1 / (1 + Math.exp(-sharedLogit[r])));
        elementwise.addScaled(shared.contributions(), target, weight, out, target, hiddenSize);
      }
    }
  }
}
