package dev.lily.engine.backend;

import java.util.List;

/**
 * Matrices that share an input: {@code outputs[i][r] = matrices[i] · input[r]}.
 *
 * @param input {@code [R, columns]}
 * @param matrices each {@code [rows_i, columns]}
 * @param outputs each {@code [R, rows_i]}
 */
public record StackedProjection(Tensor input, List<Matrix> matrices, List<Tensor> outputs) {
  public StackedProjection {
    matrices = List.copyOf(matrices);
    outputs = List.copyOf(outputs);
    if (matrices.size() != outputs.size()) {
      throw new IllegalArgumentException(
          matrices.size() + " matrices for " + outputs.size() + " outputs");
    }
  }
}
