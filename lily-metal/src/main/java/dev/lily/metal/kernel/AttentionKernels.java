package dev.lily.metal.kernel;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.lily.engine.backend.AttentionOperands;
import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.StateLayout;
import dev.lily.metal.device.ComputePipeline;
import dev.lily.metal.device.MetalBuffer;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntFunction;

/** Gated attention over paged keys and values. */
public final class AttentionKernels {
  private static final int THREADS = 256;
  private static final int PREFILL_THREADS = 128;
  private static final int PREFILL_VECTORS = 32;
  private static final int SIMDGROUPS = 8;
  private static final int BF16 = Short.BYTES;

  /** Rotations per position of each pair, in units of 2^-64. */
  private record Turns(int rotaryDim, double ropeTheta, MetalBuffer buffer) {}

  private final KernelEncoder encoder;
  private final DeviceMemory memory;
  private final ComputePipeline prepare;
  private final ComputePipeline decode;
  private final ComputePipeline decodeWidest;
  private final ComputePipeline merge;
  private final ComputePipeline plain;
  private final ComputePipeline[] prefill;
  private final ComputePipeline[] tensorPrefill;
  private final List<Turns> turns = new ArrayList<>();

  public AttentionKernels(KernelLibrary library, KernelEncoder encoder, DeviceMemory memory) {
    this.encoder = encoder;
    this.memory = memory;
    prepare = library.pipeline("attention_prepare");
    decode = library.pipeline("attention_decode");
    decodeWidest = library.pipeline("attention_decode_d256");
    merge = library.pipeline("attention_merge");
    plain = library.pipeline("attention_plain");
    prefill = widths(library, AttentionRoute::prefillName);
    tensorPrefill =
        library.hasTensorOperations()
            ? widths(library, AttentionRoute::tensorName)
            : new ComputePipeline[0];
  }

  private static ComputePipeline[] widths(KernelLibrary library, IntFunction<String> name) {
    return AttentionRoute.PREFILL_WIDTHS.stream()
        .map(width -> library.pipeline(name.apply(width)))
        .toArray(ComputePipeline[]::new);
  }

  /** The page pool and the scratch of decode attention. */
  public static final class State {
    private final StateLayout layout;
    private final Region pages;
    private final Region partial;
    private final Region stats;

    /**
     * @param pages of {@link #pageBytes} a page
     * @param partial from {@link #partialBytes}
     * @param stats from {@link #statsBytes}
     */
    public State(StateLayout layout, Region pages, Region partial, Region stats) {
      this.layout = layout;
      this.pages = pages;
      this.partial = partial;
      this.stats = stats;
    }

    public Region pages() {
      return pages;
    }
  }

  /** Bytes of a page: all layers, each a multiple of 16 bytes. */
  public static long pageBytes(StateLayout layout) {
    return layerElements(layout) * layout.numAttentionLayers() * BF16;
  }

  private static long layerElements(StateLayout layout) {
    long elements = 2L * layout.numKeyValueHeads() * layout.pageTokens() * layout.headDim();
    return (elements + 7) / 8 * 8;
  }

  /** Bytes of the partial sums of decode attention. */
  public static long partialBytes(int sequences, int numHeads, int kvHeads, int headDim) {
    return statsElements(sequences, numHeads, kvHeads) * headDim * Float.BYTES;
  }

  /** Bytes of the partial statistics of decode attention. */
  public static long statsBytes(int sequences, int numHeads, int kvHeads) {
    return statsElements(sequences, numHeads, kvHeads) * 2 * Float.BYTES;
  }

  private static long statsElements(int sequences, int numHeads, int kvHeads) {
    return (long) sequences
        * kvHeads
        * AttentionRoute.blocks(Math.max(numHeads, kvHeads), Math.max(1, kvHeads))
        * AttentionRoute.MAX_SPLITS
        * AttentionRoute.HEADS_PER_BLOCK;
  }

  private void require(AttentionOperands o, StateLayout layout) {
    if (o.headDim() > AttentionRoute.MAX_HEAD_DIM
        || o.headDim() != layout.headDim()
        || o.numKeyValueHeads() != layout.numKeyValueHeads()
        || o.numHeads() % o.numKeyValueHeads() != 0) {
      throw new BackendException(
          "Attention with %d heads, %d KV heads of %d does not fit pages of %d heads of %d (at most %d)"
              .formatted(
                  o.numHeads(),
                  o.numKeyValueHeads(),
                  o.headDim(),
                  layout.numKeyValueHeads(),
                  layout.headDim(),
                  AttentionRoute.MAX_HEAD_DIM));
    }
  }

  /** Norms, rotation and append, where attention does not do them itself. */
  public void prepare(
      DevicePlan plan,
      AttentionOperands o,
      State state,
      Region queryGate,
      Region key,
      Region value,
      Region query) {
    require(o, state.layout);
    prepare(plan, o, state, queryGate, key, value, query, RowPart.PREFILL);
    if (!AttentionRoute.isTiled(o.headDim(), state.layout.pageTokens())) {
      prepare(plan, o, state, queryGate, key, value, query, RowPart.DECODE);
    }
  }

  private void prepare(
      DevicePlan plan,
      AttentionOperands o,
      State state,
      Region queryGate,
      Region key,
      Region value,
      Region query,
      RowPart part) {
    int firstRow = part == RowPart.PREFILL ? 0 : plan.numPrefillRows();
    int rows = part == RowPart.PREFILL ? plan.numPrefillRows() : plan.numDecodeRows();
    if (rows == 0) {
      return;
    }
    encoder.kernel(prepare, part);
    bindInputs(plan, o, state, queryGate, key, value, firstRow);
    encoder.write(query, (long) firstRow * o.numHeads() * o.headDim() * BF16);
    parameters(plan, o, state, rows);
    encoder.dispatch(
        KernelEncoder.ceilDiv(o.numHeads() + o.numKeyValueHeads(), SIMDGROUPS), rows, 1, THREADS);
  }

  private void bindInputs(
      DevicePlan plan,
      AttentionOperands o,
      State state,
      Region queryGate,
      Region key,
      Region value,
      int firstRow) {
    long keyRow = (long) firstRow * o.numKeyValueHeads() * o.headDim() * BF16;
    encoder
        .read(queryGate, 2L * firstRow * o.numHeads() * o.headDim() * BF16)
        .read(key, keyRow)
        .read(value, keyRow)
        .constant(MetalTensor.of(o.queryGain()).current().buffer(), 0)
        .constant(MetalTensor.of(o.keyGain()).current().buffer(), 0)
        .constant(turns(o.rotaryDim(), o.ropeTheta()), 0);
    plan.bindPositions(encoder, firstRow);
    plan.bindSequenceOf(encoder, firstRow);
    plan.bindTables(encoder);
    encoder.write(state.pages);
  }

  private void parameters(DevicePlan plan, AttentionOperands o, State state, int rows) {
    StateLayout layout = state.layout;
    long layerElements = layerElements(layout);
    encoder
        .field(o.numHeads())
        .field(o.numKeyValueHeads())
        .field(o.headDim())
        .field(o.rotaryDim())
        .field(layout.pageTokens())
        .field(Math.toIntExact(layerElements * layout.numAttentionLayers()))
        .field(Math.toIntExact(layerElements * o.layer()))
        .field(plan.maxPages())
        .field(rows)
        .field(o.eps())
        .field((float) (1 / Math.sqrt(o.headDim())))
        .parameters();
  }

  /**
   * Attention of all rows.
   *
   * @param y bf16 {@code [rows, heads · headDim]}
   */
  public void attend(
      DevicePlan plan,
      AttentionOperands o,
      State state,
      Region queryGate,
      Region key,
      Region value,
      Region query,
      Region y) {
    require(o, state.layout);
    if (plan.numPrefillRows() > 0) {
      prefill(plan, o, state, queryGate, query, y);
    }
    if (plan.numDecodeRows() == 0) {
      return;
    }
    if (AttentionRoute.isTiled(o.headDim(), state.layout.pageTokens())) {
      decode(plan, o, state, queryGate, key, value, y);
    } else {
      plain(plan, o, state, queryGate, query, y);
    }
  }

  private void prefill(
      DevicePlan plan, AttentionOperands o, State state, Region queryGate, Region query, Region y) {
    boolean isTensor =
        tensorPrefill.length > 0 && AttentionRoute.isTensor(o.headDim(), state.layout.pageTokens());
    encoder
        .kernel(
            (isTensor ? tensorPrefill : prefill)[AttentionRoute.prefill(o.headDim())],
            RowPart.PREFILL)
        .read(query)
        .read(queryGate);
    plan.bindSequences(encoder, 0);
    plan.bindTables(encoder);
    encoder.read(state.pages).write(y);
    parameters(plan, o, state, plan.numPrefillRows());
    int vectors = plan.longestPrefill() * (o.numHeads() / o.numKeyValueHeads());
    encoder.dispatch(
        KernelEncoder.ceilDiv(vectors, PREFILL_VECTORS),
        o.numKeyValueHeads(),
        plan.numPrefillSequences(),
        PREFILL_THREADS);
  }

  private void decode(
      DevicePlan plan,
      AttentionOperands o,
      State state,
      Region queryGate,
      Region key,
      Region value,
      Region y) {
    int first = plan.numPrefillRows();
    int rows = plan.numDecodeRows();
    encoder.kernel(
        o.headDim() == AttentionRoute.MAX_HEAD_DIM ? decodeWidest : decode, RowPart.DECODE);
    bindInputs(plan, o, state, queryGate, key, value, first);
    encoder.write(state.partial).write(state.stats);
    parameters(plan, o, state, rows);
    encoder.dispatchSplits(
        plan,
        (long) o.numKeyValueHeads() * AttentionRoute.blocks(o.numHeads(), o.numKeyValueHeads()),
        rows,
        THREADS);
    encoder
        .kernel(merge, RowPart.DECODE)
        .read(state.partial)
        .read(state.stats)
        .read(queryGate, 2L * first * o.numHeads() * o.headDim() * BF16);
    plan.bindPositions(encoder, first);
    encoder.write(y, (long) first * o.numHeads() * o.headDim() * BF16);
    parameters(plan, o, state, rows);
    encoder.dispatch(o.numHeads(), rows, 1, THREADS);
  }

  private void plain(
      DevicePlan plan, AttentionOperands o, State state, Region queryGate, Region query, Region y) {
    int first = plan.numPrefillRows();
    long row = (long) first * o.numHeads() * o.headDim() * BF16;
    encoder.kernel(plain, RowPart.DECODE).read(query, row).read(queryGate, 2 * row);
    plan.bindPositions(encoder, first);
    plan.bindSequenceOf(encoder, first);
    plan.bindTables(encoder);
    encoder.read(state.pages).write(y, row);
    parameters(plan, o, state, plan.numDecodeRows());
    encoder.dispatch(o.numHeads(), plan.numDecodeRows(), 1, THREADS);
  }

  private MetalBuffer turns(int rotaryDim, double ropeTheta) {
    for (int i = 0; i < turns.size(); i++) {
      Turns known = turns.get(i);
      if (known.rotaryDim == rotaryDim && known.ropeTheta == ropeTheta) {
        return known.buffer;
      }
    }
    MetalBuffer buffer = memory.allocate(Math.max(1, rotaryDim / 2) * (long) Long.BYTES);
    for (int j = 0; j < rotaryDim / 2; j++) {
      double perPosition = Math.pow(ropeTheta, -2.0 * j / rotaryDim) / (2 * Math.PI);
      long bits =
          new BigDecimal(perPosition)
              .multiply(new BigDecimal(2).pow(64))
              .toBigInteger()
              .longValue();
      buffer.contents().setAtIndex(JAVA_LONG, j, bits);
    }
    memory.commit();
    turns.add(new Turns(rotaryDim, ropeTheta, buffer));
    return buffer;
  }
}
