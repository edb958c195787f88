package dev.lily.metal.kernel;

import dev.lily.metal.device.ComputePipeline;
import dev.lily.metal.device.MetalBuffer;
import java.util.ArrayList;
import java.util.List;

/** Embedding, choice of rows, conversions and copies. */
public final class ElementwiseKernels {
  static final List<String> NAMES = names();

  private static final int THREADS = 256;
  private static final int WORD_BYTES = 16;

  private final KernelEncoder encoder;
  private final Pipelines<WeightFormat> embed;
  private final ComputePipeline gatherRows;
  private final ComputePipeline narrow;
  private final ComputePipeline widen;
  private final ComputePipeline copyWords;
  private final ComputePipeline clearWords;

  public ElementwiseKernels(KernelLibrary library, KernelEncoder encoder) {
    this.encoder = encoder;
    embed = Pipelines.ofFormats(library, ElementwiseKernels::embedName);
    gatherRows = library.pipeline("gather_rows");
    narrow = library.pipeline("convert_f32_bf16");
    widen = library.pipeline("convert_bf16_f32");
    copyWords = library.pipeline("copy_words");
    clearWords = library.pipeline("clear_words");
  }

  private static String embedName(WeightFormat format) {
    return "embed_" + format.kernelName() + "_f32";
  }

  private static List<String> names() {
    List<String> names =
        new ArrayList<>(
            List.of(
                "gather_rows",
                "convert_f32_bf16",
                "convert_bf16_f32",
                "copy_words",
                "clear_words"));
    for (WeightFormat format : WeightFormat.values()) {
      names.add(embedName(format));
    }
    return List.copyOf(names);
  }

  /**
   * {@code x[r] = matrix[token of row r]}.
   *
   * @param x fp32 {@code [rows, columns]}
   */
  public void embed(DevicePlan plan, MetalMatrix matrix, Region lastTokens, Region x) {
    encoder.kernel(embed.get(matrix.format()));
    matrix.bind(encoder);
    plan.bindTokens(encoder);
    encoder
        .read(lastTokens)
        .write(x)
        .field(matrix.columns())
        .field(matrix.groupSize())
        .field(matrix.rows())
        .parameters()
        .dispatch(KernelEncoder.ceilDiv(matrix.columns(), THREADS), plan.numRows(), 1, THREADS);
  }

  /** {@code rows[i] = x[row] + branch[row]} of each row that needs logits. */
  public void gatherRows(DevicePlan plan, int columns, Region x, Region branch, Region rows) {
    encoder.kernel(gatherRows).read(x).read(branch);
    plan.bindLogitRows(encoder);
    encoder
        .write(rows)
        .field(columns)
        .parameters()
        .dispatch(KernelEncoder.ceilDiv(columns, THREADS), plan.numLogitRows(), 1, THREADS);
  }

  /** The tensor's memory of a type, converted first if it holds another. */
  public Region as(ElementType type, MetalTensor tensor, int rows) {
    if (tensor.type() == type) {
      return tensor.current();
    }
    Region from = tensor.current();
    Region to = tensor.written(type, tensor.order());
    int count = rows * tensor.columns();
    encoder
        .kernel(type == ElementType.BF16 ? narrow : widen)
        .read(from)
        .write(to)
        .field(count)
        .parameters()
        .dispatch(KernelEncoder.ceilDiv(count, THREADS), 1, 1, THREADS);
    return to;
  }

  /** Copies bytes, a multiple of 16. */
  public void copy(Region from, long fromOffset, Region to, long toOffset, long bytes) {
    int words = Math.toIntExact(bytes / WORD_BYTES);
    if (words > 0) {
      encoder
          .kernel(copyWords)
          .read(from, fromOffset)
          .write(to, toOffset)
          .field(words)
          .parameters()
          .dispatch(KernelEncoder.ceilDiv(words, THREADS), 1, 1, THREADS);
    }
  }

  /** Copies bytes to memory that no other kernel uses. */
  public void copyOut(Region from, MetalBuffer to, long bytes) {
    copy(from, 0, new Region(to), 0, bytes);
  }

  /** Zeroes bytes, a multiple of 16. */
  public void clear(Region region, long offset, long bytes) {
    int words = Math.toIntExact(bytes / WORD_BYTES);
    if (words > 0) {
      encoder
          .kernel(clearWords)
          .write(region, offset)
          .field(words)
          .parameters()
          .dispatch(KernelEncoder.ceilDiv(words, THREADS), 1, 1, THREADS);
    }
  }
}
