package dev.lily.metal.kernel;

import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.ExpertsOperands;
import dev.lily.engine.backend.ModelShape;
import dev.lily.metal.device.ComputePipeline;
import dev.lily.metal.device.MetalBuffer;
import java.util.IdentityHashMap;

/** Sparse experts, from the router's logits on. */
public final class ExpertsKernels {
  private static final int THREADS = 256;
  private static final int GROUP_THREADS = 1024;
  private static final int TILE_THREADS = 128;
  private static final int FUSED_OUTPUTS = 16;
  private static final int EXPAND_TILE_OUTPUTS = 32;
  private static final int CONTRACT_TILE_OUTPUTS = 64;
  private static final int BF16 = Short.BYTES;
  private static final int WORD = Integer.BYTES;

  private final KernelEncoder encoder;
  private final MatrixLoader loader;
  private final long maxThreadgroupBytes;
  private final ComputePipeline route;
  private final ComputePipeline group;
  private final ComputePipeline combine;
  private final Pipelines<WeightFormat> expand;
  private final Pipelines<WeightFormat> contract;
  private final Pipelines<WeightFormat> expandTiles;
  private final Pipelines<WeightFormat> contractTiles;
  private final IdentityHashMap<ExpertsOperands, Block> blocks = new IdentityHashMap<>();

  public ExpertsKernels(
      KernelLibrary library, KernelEncoder encoder, MatrixLoader loader, long maxThreadgroupBytes) {
    this.encoder = encoder;
    this.loader = loader;
    this.maxThreadgroupBytes = maxThreadgroupBytes;
    route = library.pipeline("experts_route");
    group = library.pipeline("experts_group");
    combine = library.pipeline("experts_combine");
    expand = Pipelines.ofFormats(library, ExpertsRoute::expand);
    contract = Pipelines.ofFormats(library, ExpertsRoute::contract);
    boolean tensors = library.hasTensorOperations();
    expandTiles = Pipelines.ofFormats(library, format -> ExpertsRoute.expandTiles(format, tensors));
    contractTiles =
        Pipelines.ofFormats(library, format -> ExpertsRoute.contractTiles(format, tensors));
  }

  /** The matrices of a block, gate and up of one format. */
  private record Block(
      int hidden,
      int intermediate,
      int sharedIntermediate,
      int experts,
      int perToken,
      MetalMatrix gate,
      MetalMatrix up,
      MetalMatrix down,
      MetalMatrix sharedGate,
      MetalMatrix sharedUp,
      MetalMatrix sharedDown,
      boolean isFused) {}

  /** Scratch for passes up to the limits. */
  public static final class Scratch {
    private final Region chosen;
    private final Region weights;
    private final Region offsets;
    private final Region tiles;
    private final Region order;
    private final Region act;
    private final Region contributions;
    private final Region sharedAct;
    private final Region shared;
    private final Region sharedGate;
    private final ModelShape shape;
    private final int maxRows;

    public Scratch(DeviceMemory memory, ModelShape shape, int maxRows) {
      this.shape = shape;
      this.maxRows = maxRows;
      long assignments = (long) maxRows * shape.numExpertsPerToken();
      chosen = region(memory, assignments * WORD);
      weights = region(memory, assignments * WORD);
      offsets = region(memory, (shape.numExperts() + 1L) * WORD);
      tiles = region(memory, (shape.numExperts() + 1L) * WORD);
      order = region(memory, assignments * WORD);
      act = region(memory, actBytes(shape, maxRows));
      contributions = region(memory, assignments * shape.hiddenSize() * BF16);
      sharedAct = region(memory, (long) maxRows * shape.sharedIntermediateSize() * BF16);
      shared = region(memory, (long) maxRows * shape.hiddenSize() * BF16);
      sharedGate = new Region(memory.allocatePoisoned((long) maxRows * Float.BYTES));
    }

    private static Region region(DeviceMemory memory, long bytes) {
      return Region.undivided(memory.allocatePoisoned(bytes));
    }

    private static long actBytes(ModelShape shape, int maxRows) {
      return BF16
          * (long) maxRows
          * ((long) shape.numExpertsPerToken() * shape.moeIntermediateSize()
              + shape.sharedIntermediateSize());
    }

    /** Bytes of the scratch. */
    public static long bytes(ModelShape shape, int maxRows) {
      long assignments = (long) maxRows * shape.numExpertsPerToken();
      return assignments * (3L * WORD + (long) shape.hiddenSize() * BF16)
          + actBytes(shape, maxRows)
          + (long) maxRows
              * ((shape.sharedIntermediateSize() + (long) shape.hiddenSize()) * BF16 + Float.BYTES)
          + 2L * (shape.numExperts() + 1) * WORD;
    }

    /** fp32 {@code [rows]}: where the logit of the shared expert's gate goes. */
    public Region sharedGate() {
      return sharedGate;
    }

    /** Gives the memory back. */
    public void release(DeviceMemory memory) {
      for (Region region :
          new Region[] {
            chosen,
            weights,
            offsets,
            tiles,
            order,
            act,
            contributions,
            sharedAct,
            shared,
            sharedGate
          }) {
        memory.release(region.buffer());
      }
    }
  }

  private Block block(ExpertsOperands o) {
    Block block = blocks.get(o);
    if (block == null) {
      block = newBlock(o);
      blocks.put(o, block);
    }
    return block;
  }

  private Block newBlock(ExpertsOperands o) {
    MetalMatrix gate = MetalMatrix.of(o.gate());
    MetalMatrix up = MetalMatrix.of(o.up());
    MetalMatrix sharedGate = MetalMatrix.of(o.sharedGate());
    MetalMatrix sharedUp = MetalMatrix.of(o.sharedUp());
    MetalMatrix down = MetalMatrix.of(o.down());
    MetalMatrix sharedDown = MetalMatrix.of(o.sharedDown());
    int experts = o.router().rows();
    if (experts > ExpertsRoute.MAX_EXPERTS
        || o.numExpertsPerToken() > Math.min(experts, ExpertsRoute.MAX_PER_TOKEN)) {
      throw new BackendException(
          "%d of %d experts per token: at most %d of %d are supported"
              .formatted(
                  o.numExpertsPerToken(),
                  experts,
                  ExpertsRoute.MAX_PER_TOKEN,
                  ExpertsRoute.MAX_EXPERTS));
    }
    MetalMatrix wideGate = likeOther(gate, up);
    MetalMatrix wideUp = likeOther(up, gate);
    MetalMatrix wideSharedGate = likeOther(sharedGate, sharedUp);
    MetalMatrix wideSharedUp = likeOther(sharedUp, sharedGate);
    boolean uniform =
        wideGate.isLike(down) && wideGate.isLike(wideSharedGate) && wideGate.isLike(sharedDown);
    return new Block(
        down.rows(),
        gate.rows(),
        sharedGate.rows(),
        experts,
        o.numExpertsPerToken(),
        wideGate,
        wideUp,
        down,
        wideSharedGate,
        wideSharedUp,
        sharedDown,
        ExpertsRoute.isFused(
            uniform,
            down.rows(),
            gate.rows(),
            sharedGate.rows(),
            o.numExpertsPerToken(),
            maxThreadgroupBytes));
  }

  /** The matrix in a format in which the kernels take it together with the other. */
  private MetalMatrix likeOther(MetalMatrix matrix, MetalMatrix other) {
    if (matrix.isLike(other)) {
      return matrix;
    }
    if (matrix.format().isAffine() || other.format().isAffine()) {
      throw new BackendException(
          "Matrix '%s' is %s in groups of %d and '%s' %s in groups of %d; both must be alike"
              .formatted(
                  matrix.name(),
                  matrix.format(),
                  matrix.groupSize(),
                  other.name(),
                  other.format(),
                  other.groupSize()));
    }
    return matrix.format() == WeightFormat.BF16 ? loader.widen(matrix) : matrix;
  }

  /**
   * Runs the experts over all rows. The shared expert's gate logits are in the scratch.
   *
   * @param logits fp32 {@code [rows, experts]}
   * @param n bf16 {@code [rows, hidden]}
   * @param out bf16 {@code [rows, hidden]}
   */
  public void run(
      DevicePlan plan, ExpertsOperands o, Scratch scratch, Region logits, Region n, Region out) {
    Block block = block(o);
    require(block, scratch, plan);
    int prefill = plan.numPrefillRows();
    int decode = plan.numDecodeRows();
    if (!block.isFused) {
      // A row's result is the same wherever it stands among the tiles.
      tiles(block, scratch, logits, n, out, prefill + decode, RowPart.ALL);
      return;
    }
    if (prefill > 0) {
      tiles(block, scratch, logits, n, out, prefill, RowPart.PREFILL);
    }
    if (decode > 0) {
      fused(block, scratch, logits, n, out, prefill, decode);
    }
  }

  private static void require(Block block, Scratch scratch, DevicePlan plan) {
    ModelShape shape = scratch.shape;
    if (plan.numRows() > scratch.maxRows
        || block.hidden > shape.hiddenSize()
        || block.experts > shape.numExperts()
        || block.perToken > shape.numExpertsPerToken()
        || block.intermediate > shape.moeIntermediateSize()
        || block.sharedIntermediate > shape.sharedIntermediateSize()) {
      throw new BackendException(
          "Experts of %d of %d, %d and %d wide, exceed the shape the state was opened for: %s"
              .formatted(
                  block.perToken,
                  block.experts,
                  block.intermediate,
                  block.sharedIntermediate,
                  shape));
    }
  }

  private void fused(
      Block block, Scratch scratch, Region logits, Region n, Region out, int first, int rows) {
    long hiddenRow = (long) first * block.hidden * BF16;
    encoder.kernel(expand.get(block.gate.format()), RowPart.DECODE);
    block.gate.bind(encoder);
    block.up.bind(encoder);
    block.sharedGate.bind(encoder);
    block.sharedUp.bind(encoder);
    encoder
        .read(logits, (long) first * block.experts * Float.BYTES)
        .read(n, hiddenRow)
        .write(scratch.act)
        .write(scratch.chosen)
        .write(scratch.weights);
    fusedParameters(block);
    encoder.dispatch(
        KernelEncoder.ceilDiv(
            Math.max(block.intermediate, block.sharedIntermediate), FUSED_OUTPUTS),
        block.perToken + 1,
        rows,
        THREADS);

    encoder.kernel(contract.get(block.gate.format()), RowPart.DECODE);
    block.down.bind(encoder);
    block.sharedDown.bind(encoder);
    encoder
        .read(scratch.act)
        .read(scratch.chosen)
        .read(scratch.weights)
        .read(scratch.sharedGate, (long) first * Float.BYTES)
        .write(out, hiddenRow);
    fusedParameters(block);
    encoder
        .threadgroupMemory(
            ExpertsRoute.threadgroupBytes(
                block.intermediate, block.sharedIntermediate, block.perToken))
        .dispatch(KernelEncoder.ceilDiv(block.hidden, FUSED_OUTPUTS), rows, 1, THREADS);
  }

  private void fusedParameters(Block block) {
    encoder
        .field(block.hidden)
        .field(block.intermediate)
        .field(block.sharedIntermediate)
        .field(block.experts)
        .field(block.perToken)
        .field(block.gate.groupSize())
        .field(block.gate.stackRows())
        .field(block.up.stackRows())
        .field(block.down.stackRows())
        .parameters();
  }

  private void tiles(
      Block block, Scratch scratch, Region logits, Region n, Region out, int rows, RowPart part) {
    int assignments = rows * block.perToken;
    encoder.kernel(route, part).read(logits).write(scratch.chosen).write(scratch.weights);
    routeParameters(block, assignments);
    encoder.dispatch(rows, 1, 1, THREADS);
    expandTiles(block, scratch, n, rows, true, part);

    encoder
        .kernel(group, part)
        .read(scratch.chosen)
        .write(scratch.offsets)
        .write(scratch.tiles)
        .write(scratch.order);
    routeParameters(block, assignments);
    encoder.dispatch(1, 1, 1, GROUP_THREADS);

    expandTiles(block, scratch, n, rows, false, part);
    contractTiles(block, scratch, rows, true, part);
    contractTiles(block, scratch, rows, false, part);

    encoder
        .kernel(combine, part)
        .read(scratch.contributions)
        .read(scratch.weights)
        .read(scratch.shared)
        .read(scratch.sharedGate)
        .write(out)
        .field(block.hidden)
        .field(block.perToken)
        .parameters()
        .dispatch(KernelEncoder.ceilDiv(block.hidden, THREADS), rows, 1, THREADS);
  }

  private void routeParameters(Block block, int assignments) {
    encoder.field(block.experts).field(block.perToken).field(assignments).parameters();
  }

  private void expandTiles(
      Block block, Scratch scratch, Region n, int rows, boolean isShared, RowPart part) {
    MetalMatrix gate = isShared ? block.sharedGate : block.gate;
    MetalMatrix up = isShared ? block.sharedUp : block.up;
    int outputs = isShared ? block.sharedIntermediate : block.intermediate;
    int assignments = isShared ? rows : rows * block.perToken;
    encoder.kernel(expandTiles.get(gate.format()), part);
    gate.bind(encoder);
    up.bind(encoder);
    encoder.read(n);
    bindGroups(scratch, isShared);
    encoder.write(isShared ? scratch.sharedAct : scratch.act);
    tileParameters(block, gate, block.hidden, outputs, assignments, isShared);
    encoder
        .field(isShared ? 0 : up.stackRows())
        .parameters()
        .dispatch(
            KernelEncoder.ceilDiv(outputs, EXPAND_TILE_OUTPUTS),
            numTiles(block, assignments, isShared),
            1,
            TILE_THREADS);
  }

  private void contractTiles(
      Block block, Scratch scratch, int rows, boolean isShared, RowPart part) {
    MetalMatrix down = isShared ? block.sharedDown : block.down;
    int columns = isShared ? block.sharedIntermediate : block.intermediate;
    int assignments = isShared ? rows : rows * block.perToken;
    encoder.kernel(contractTiles.get(down.format()), part);
    down.bind(encoder);
    encoder.read(isShared ? scratch.sharedAct : scratch.act);
    bindGroups(scratch, isShared);
    encoder.write(isShared ? scratch.shared : scratch.contributions);
    tileParameters(block, down, columns, block.hidden, assignments, isShared);
    encoder
        .field(0)
        .parameters()
        .dispatch(
            KernelEncoder.ceilDiv(block.hidden, CONTRACT_TILE_OUTPUTS),
            numTiles(block, assignments, isShared),
            1,
            TILE_THREADS);
  }

  private void bindGroups(Scratch scratch, boolean isShared) {
    if (isShared) {
      MetalBuffer unused = scratch.offsets.buffer();
      encoder.constant(unused, 0).constant(unused, 0).constant(unused, 0);
    } else {
      encoder.read(scratch.offsets).read(scratch.tiles).read(scratch.order);
    }
  }

  private void tileParameters(
      Block block,
      MetalMatrix matrix,
      int columns,
      int outputs,
      int assignments,
      boolean isShared) {
    encoder
        .field(columns)
        .field(matrix.groupSize())
        .field(outputs)
        .field(assignments)
        .field(isShared ? 0 : block.experts)
        .field(isShared ? 1 : block.perToken)
        .field(isShared ? 0 : matrix.stackRows());
  }

  private static int numTiles(Block block, int assignments, boolean isShared) {
    return isShared
        ? KernelEncoder.ceilDiv(assignments, ExpertsRoute.TILE_ROWS)
        : ExpertsRoute.mostTiles(assignments, block.experts);
  }
}
