package dev.lily.engine.backend.contract;

import dev.lily.engine.backend.ComputePass;
import dev.lily.engine.backend.Tensor;
import dev.lily.engine.backend.contract.TinyModel.Layer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * The activations of one sequence in a {@link TinyModel}, row by row from its first. Each step of
 * the model can be held against double precision <em>given what the back end itself fed to it</em>,
 * so that a bound on its error needs no allowance for what came before.
 */
public final class TinyTrace {
  /** Keeps nothing. */
  static final TinyTrace NONE = new TinyTrace();

  /** What is kept of a layer; the outputs of its stacked projections come on top. */
  public enum Step {
    /** Residual stream before the mixer. */
    MIXER_INPUT,
    /** What the delta rule or attention gives. */
    MIXED,
    /** The same, projected. */
    MIXER,
    /** Residual stream before the experts. */
    EXPERTS_INPUT,
    ROUTER_LOGITS,
    EXPERTS,
    /** Rows before the last norm. */
    LAST,
    LOGITS
  }

  private record Block(float[] values, int columns) {}

  private final Map<Integer, Map<Step, List<Block>>> steps = new TreeMap<>();
  private final Map<Integer, List<List<Block>>> projections = new TreeMap<>();

  void copy(ComputePass pass, int count, int layer, Step step, Tensor tensor) {
    if (this != NONE) {
      steps
          .computeIfAbsent(layer, i -> new EnumMap<>(Step.class))
          .computeIfAbsent(step, s -> new ArrayList<>())
          .add(block(pass, count, tensor));
    }
  }

  void copy(ComputePass pass, int count, int layer, List<Tensor> outputs) {
    if (this == NONE) {
      return;
    }
    List<List<Block>> blocks = projections.computeIfAbsent(layer, i -> new ArrayList<>());
    for (int m = 0; m < outputs.size(); m++) {
      if (blocks.size() == m) {
        blocks.add(new ArrayList<>());
      }
      blocks.get(m).add(block(pass, count, outputs.get(m)));
    }
  }

  private static Block block(ComputePass pass, int count, Tensor tensor) {
    float[] copy = new float[count * tensor.columns()];
    pass.copyOut(tensor, 0, count, copy);
    return new Block(copy, tensor.columns());
  }

  private static List<double[]> rows(List<Block> blocks) {
    List<double[]> rows = new ArrayList<>();
    for (Block block : blocks) {
      for (int at = 0; at < block.values.length; at += block.columns) {
        rows.add(Close.doubles(block.values, at, block.columns));
      }
    }
    return rows;
  }

  /** All rows of a step, in the order of their positions. */
  public List<double[]> rows(int layer, Step step) {
    return rows(steps.get(layer).get(step));
  }

  private List<double[]> projections(int layer, int output) {
    return rows(projections.get(layer).get(output));
  }

  /**
   * Largest errors of each step over all rows, in roundings: multiples of {@code epsilon} times the
   * size of what is rounded. The residual stream's are 0, or infinite if any bit is wrong.
   *
   * @param epsilon unit roundoff of the activations
   */
  public Map<String, Double> errors(TinyModel model, double epsilon) {
    Map<String, Double> errors = new TreeMap<>();
    Layer[] layers = model.layers();
    for (int i = 0; i < layers.length; i++) {
      residual(errors, i, Step.MIXER_INPUT, Step.MIXER, i, Step.EXPERTS_INPUT);
      boolean last = i + 1 == layers.length;
      residual(
          errors, i, Step.EXPERTS_INPUT, Step.EXPERTS, i + 1, last ? Step.LAST : Step.MIXER_INPUT);
    }
    for (int i = 0; i < layers.length; i++) {
      Layer layer = layers[i];
      for (int m = 0; m < layer.inputWeights().size(); m++) {
        products(
            errors,
            "projections",
            layer.inputWeights().get(m).values(),
            normed(rows(i, Step.MIXER_INPUT), layer.mixerGain().values()),
            projections(i, m),
            epsilon);
      }
      mixed(errors, i, layer, epsilon);
      products(
          errors,
          "mixer",
          layer.output().values(),
          rows(i, Step.MIXED),
          rows(i, Step.MIXER),
          epsilon);
      List<double[]> n = normed(rows(i, Step.EXPERTS_INPUT), layer.expertsGain().values());
      products(
          errors,
          "router",
          layer.expertsOracle().router(),
          n,
          rows(i, Step.ROUTER_LOGITS),
          epsilon);
      for (int r = 0; r < n.size(); r++) {
        double[] expected = layer.expertsOracle().run(n.get(r), rows(i, Step.ROUTER_LOGITS).get(r));
        worst(
            errors, "experts", rows(i, Step.EXPERTS).get(r), expected, epsilon * largest(expected));
      }
    }
    products(
        errors,
        "logits",
        model.lmHead(),
        normed(rows(layers.length, Step.LAST), model.lastGain().values()),
        rows(layers.length, Step.LOGITS),
        epsilon);
    return errors;
  }

  /** Sums in fp32 have one right result; only the newest rows may have come to the end. */
  private void residual(
      Map<String, Double> errors, int layer, Step x, Step branch, int sumLayer, Step sum) {
    List<double[]> xs = rows(layer, x);
    List<double[]> branches = rows(layer, branch);
    List<double[]> sums = rows(sumLayer, sum);
    int skipped = xs.size() - sums.size();
    for (int r = 0; r < sums.size(); r++) {
      for (int c = 0; c < sums.get(r).length; c++) {
        float expected = (float) (xs.get(skipped + r)[c] + branches.get(skipped + r)[c]);
        errors.merge(
            "residual",
            expected == (float) sums.get(r)[c] ? 0 : Double.POSITIVE_INFINITY,
            Math::max);
      }
    }
  }

  private void mixed(Map<String, Double> errors, int index, Layer layer, double epsilon) {
    List<double[]> actual = rows(index, Step.MIXED);
    int width = actual.getFirst().length;
    double[] expected;
    if (layer.deltaOracle() != null) {
      expected =
          layer
              .deltaOracle()
              .run(
                  projections(index, 0),
                  projections(index, 1),
                  projections(index, 2),
                  projections(index, 3));
    } else {
      expected =
          layer
              .attentionOracle()
              .run(projections(index, 0), projections(index, 1), projections(index, 2));
    }
    String name = layer.deltaOracle() != null ? "delta" : "attention";
    for (int r = 0; r < actual.size(); r++) {
      double[] row = Arrays.copyOfRange(expected, r * width, (r + 1) * width);
      worst(errors, name, actual.get(r), row, epsilon * largest(row));
    }
  }

  /** By how much the norm after the delta rule magnifies an error, at most, in each row. */
  public double[] magnified(TinyModel model) {
    double[] most = new double[rows(0, Step.MIXED).size()];
    for (int i = 0; i < model.layers().length; i++) {
      Oracle.Delta oracle = model.layers()[i].deltaOracle();
      if (oracle != null) {
        double[] magnified = new double[most.length * oracle.valueHeads()];
        oracle.run(
            projections(i, 0), projections(i, 1), projections(i, 2), projections(i, 3), magnified);
        for (int m = 0; m < magnified.length; m++) {
          most[m / oracle.valueHeads()] = Math.max(most[m / oracle.valueHeads()], magnified[m]);
        }
      }
    }
    return most;
  }

  /** The first layer in which a row went through other experts than there; -1 if none. */
  public int firstOtherChoice(TinyTrace other, TinyModel model, int row) {
    for (int i = 0; i < model.layers().length; i++) {
      int perToken = model.layers()[i].expertsOracle().numExpertsPerToken();
      if (!Arrays.equals(
          chosen(routerLogits(i, row), perToken), chosen(other.routerLogits(i, row), perToken))) {
        return i;
      }
    }
    return -1;
  }

  public double[] routerLogits(int layer, int row) {
    return rows(layer, Step.ROUTER_LOGITS).get(row);
  }

  /** How far the last expert that is chosen lies above the first that is not. */
  public double margin(TinyModel model, int layer, int row) {
    double[] logits = routerLogits(layer, row);
    Arrays.sort(logits);
    int first = logits.length - model.layers()[layer].expertsOracle().numExpertsPerToken();
    return first == 0 ? Double.POSITIVE_INFINITY : logits[first] - logits[first - 1];
  }

  private static boolean[] chosen(double[] logits, int perToken) {
    boolean[] chosen = new boolean[logits.length];
    for (int e = 0; e < logits.length; e++) {
      int before = 0;
      for (int f = 0; f < logits.length; f++) {
        before += logits[f] > logits[e] || (logits[f] == logits[e] && f < e) ? 1 : 0;
      }
      chosen[e] = before < perToken;
    }
    return chosen;
  }

  private static List<double[]> normed(List<double[]> rows, float[] gain) {
    return rows.stream().map(row -> Oracle.rmsNorm(row, gain, TinyModel.EPS)).toList();
  }

  /** Roundings of terms add up like a random walk. */
  private static void products(
      Map<String, Double> errors,
      String name,
      TestMatrix matrix,
      List<double[]> inputs,
      List<double[]> actual,
      double epsilon) {
    for (int r = 0; r < inputs.size(); r++) {
      double[] expected = matrix.multiply(0, inputs.get(r));
      double[] scale = matrix.rootOfSquares(inputs.get(r));
      for (int o = 0; o < actual.get(r).length; o++) {
        double error =
            Math.abs(actual.get(r)[o] - expected[o])
                / (epsilon * Math.max(scale[o], Math.abs(expected[o])));
        errors.merge(name, error, Math::max);
      }
    }
  }

  private static void worst(
      Map<String, Double> errors, String name, double[] actual, double[] expected, double unit) {
    for (int c = 0; c < actual.length; c++) {
      errors.merge(name, Math.abs(actual[c] - expected[c]) / unit, Math::max);
    }
  }

  private static double largest(double[] values) {
    double largest = 0;
    for (double value : values) {
      largest = Math.max(largest, Math.abs(value));
    }
    return largest;
  }
}
