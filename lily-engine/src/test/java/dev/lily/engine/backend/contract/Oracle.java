package dev.lily.engine.backend.contract;

import dev.lily.engine.backend.KeyValueType;
import java.util.Arrays;
import java.util.List;

/** The verbs' mathematics in double precision, one row at a time and as plain as it gets. */
final class Oracle {
  private Oracle() {}

  static double sigmoid(double x) {
    return 1 / (1 + Math.exp(-x));
  }

  static double silu(double x) {
    return x * sigmoid(x);
  }

  static double[] rmsNorm(double[] x, float[] gain, double eps) {
    double sum = 0;
    for (double v : x) {
      sum += v * v;
    }
    double[] out = new double[x.length];
    for (int i = 0; i < x.length; i++) {
      out[i] = x[i] / Math.sqrt(sum / x.length + eps) * gain[i];
    }
    return out;
  }

  private static double[] slice(double[] x, int from, int count) {
    return Arrays.copyOfRange(x, from, from + count);
  }

  private static double dot(double[] a, double[] b) {
    double sum = 0;
    for (int i = 0; i < a.length; i++) {
      sum += a[i] * b[i];
    }
    return sum;
  }

  /** Gated DeltaNet over a whole sequence from an empty state. */
  record Delta(
      int keyHeads,
      int valueHeads,
      int keyDim,
      int valueDim,
      int kernel,
      float[] conv,
      float[] aLog,
      float[] dtBias,
      float[] gain,
      double eps) {

    int channels() {
      return 2 * keyHeads * keyDim + valueHeads * valueDim;
    }

    /** Rows of y, one after the other. */
    double[] run(List<double[]> qkv, List<double[]> z, List<double[]> a, List<double[]> b) {
      return run(qkv, z, a, b, new double[qkv.size() * valueHeads]);
    }

    /**
     * @param magnified {@code [rows, valueHeads]}, set to what the norm makes of an error of the
     *     size of the terms that the outputs of a head are summed from: large where they cancel
     */
    double[] run(
        List<double[]> qkv,
        List<double[]> z,
        List<double[]> a,
        List<double[]> b,
        double[] magnified) {
      int width = valueHeads * valueDim;
      double[] y = new double[qkv.size() * width];
      double[][][] state = new double[valueHeads][keyDim][valueDim];
      for (int t = 0; t < qkv.size(); t++) {
        double[] c = convolve(qkv, t);
        for (int h = 0; h < valueHeads; h++) {
          int keyHead = h / (valueHeads / keyHeads);
          double[] q = slice(c, keyHead * keyDim, keyDim);
          double[] k = slice(c, (keyHeads + keyHead) * keyDim, keyDim);
          double[] v = slice(c, 2 * keyHeads * keyDim + h * valueDim, valueDim);
          double qNorm = Math.sqrt(dot(q, q) + 1e-6) * Math.sqrt(keyDim);
          double kNorm = Math.sqrt(dot(k, k) + 1e-6);
          for (int i = 0; i < keyDim; i++) {
            q[i] /= qNorm;
            k[i] /= kNorm;
          }
          double gate = a.get(t)[h] + dtBias[h];
          double softplus = gate > 20 ? gate : Math.log1p(Math.exp(gate));
          double decay = Math.exp(-Math.exp(aLog[h]) * softplus);
          double[] o = step(state[h], q, k, v, decay, sigmoid(b.get(t)[h]));
          double[] n = rmsNorm(o, gain, eps);
          magnified[t * valueHeads + h] =
              terms(state[h], q) / Math.sqrt(dot(o, o) / o.length + eps);
          for (int j = 0; j < valueDim; j++) {
            y[t * width + h * valueDim + j] = n[j] * silu(z.get(t)[h * valueDim + j]);
          }
        }
      }
      return y;
    }

    /** The root of the mean square, over the outputs, of the sums of their terms' magnitudes. */
    private static double terms(double[][] s, double[] q) {
      double squares = 0;
      for (int j = 0; j < s[0].length; j++) {
        double sum = 0;
        for (int i = 0; i < q.length; i++) {
          sum += Math.abs(s[i][j] * q[i]);
        }
        squares += sum * sum;
      }
      return Math.sqrt(squares / s[0].length);
    }

    private double[] convolve(List<double[]> qkv, int t) {
      double[] c = new double[channels()];
      for (int ch = 0; ch < c.length; ch++) {
        for (int tap = 0; tap < kernel; tap++) {
          int from = t - (kernel - 1) + tap;
          if (from >= 0) {
            c[ch] += conv[ch * kernel + tap] * qkv.get(from)[ch];
          }
        }
        c[ch] = silu(c[ch]);
      }
      return c;
    }

    private double[] step(
        double[][] s, double[] q, double[] k, double[] v, double decay, double beta) {
      double[] o = new double[valueDim];
      for (int j = 0; j < valueDim; j++) {
        double read = 0;
        for (int i = 0; i < keyDim; i++) {
          s[i][j] *= decay;
          read += s[i][j] * k[i];
        }
        double d = beta * (v[j] - read);
        for (int i = 0; i < keyDim; i++) {
          s[i][j] += k[i] * d;
          o[j] += s[i][j] * q[i];
        }
      }
      return o;
    }
  }

  /** Gated attention over a whole sequence from an empty cache. */
  record Attention(
      int heads,
      int keyValueHeads,
      int headDim,
      int rotaryDim,
      double ropeTheta,
      float[] queryGain,
      float[] keyGain,
      double eps) {

    /** Rows of y, one after the other. */
    double[] run(List<double[]> queryAndGate, List<double[]> key, List<double[]> value) {
      double[] bounds = new double[key.size() * heads * headDim];
      return run(queryAndGate, key, value, KeyValueType.FP32, bounds);
    }

    /**
     * @param bounds {@code [rows, heads, headDim]}, set to how far a result may move if no element
     *     of a key or value is off by more than half a step of the type. A score then moves by at
     *     most {@code e}, a weight by a factor of at most {@code exp(2 max e)}.
     */
    double[] run(
        List<double[]> queryAndGate,
        List<double[]> key,
        List<double[]> value,
        KeyValueType type,
        double[] bounds) {
      double[] y = new double[key.size() * heads * headDim];
      double[][] keys = new double[key.size() * keyValueHeads][];
      double[][] values = new double[key.size() * keyValueHeads][];
      for (int t = 0; t < key.size(); t++) {
        for (int m = 0; m < keyValueHeads; m++) {
          keys[t * keyValueHeads + m] =
              rotate(rmsNorm(slice(key.get(t), m * headDim, headDim), keyGain, eps), t);
          values[t * keyValueHeads + m] = slice(value.get(t), m * headDim, headDim);
        }
      }
      double scale = 1 / Math.sqrt(headDim);
      for (int t = 0; t < key.size(); t++) {
        for (int n = 0; n < heads; n++) {
          double[] q = slice(queryAndGate.get(t), 2 * n * headDim, headDim);
          double[] gate = slice(queryAndGate.get(t), (2 * n + 1) * headDim, headDim);
          q = rotate(rmsNorm(q, queryGain, eps), t);
          int m = n / (heads / keyValueHeads);
          double[] p = new double[t + 1];
          double max = Double.NEGATIVE_INFINITY;
          double error = 0;
          for (int u = 0; u <= t; u++) {
            double[] k = keys[u * keyValueHeads + m];
            p[u] = dot(q, k) * scale;
            max = Math.max(max, p[u]);
            error = Math.max(error, dot(magnitudes(q), halfSteps(type, k)) * scale);
          }
          double sum = 0;
          for (int u = 0; u <= t; u++) {
            p[u] = Math.exp(p[u] - max);
            sum += p[u];
          }
          double factor = Math.exp(2 * error);
          for (int u = 0; u <= t; u++) {
            double[] v = values[u * keyValueHeads + m];
            double[] half = halfSteps(type, v);
            for (int d = 0; d < headDim; d++) {
              int at = (t * heads + n) * headDim + d;
              double weight = p[u] / sum * sigmoid(gate[d]);
              y[at] += weight * v[d];
              bounds[at] += weight * (factor * half[d] + (factor - 1) * Math.abs(v[d]));
            }
          }
        }
      }
      return y;
    }

    private static double[] magnitudes(double[] x) {
      return Arrays.stream(x).map(Math::abs).toArray();
    }

    /** How far each element of a row may be rounded. */
    private static double[] halfSteps(KeyValueType type, double[] row) {
      double largest = Arrays.stream(magnitudes(row)).max().orElseThrow();
      return Arrays.stream(row)
          .map(
              x ->
                  switch (type) {
                    case FP32 -> 0;
                    case BF16 -> Math.abs(x) * 0x1p-8;
                    case INT8 -> largest / 127 / 2;
                  })
          .toArray();
    }

    private double[] rotate(double[] x, int position) {
      int half = rotaryDim / 2;
      for (int j = 0; j < half; j++) {
        double angle = position * Math.pow(ropeTheta, -2.0 * j / rotaryDim);
        double a = x[j];
        double b = x[j + half];
        x[j] = a * Math.cos(angle) - b * Math.sin(angle);
        x[j + half] = b * Math.cos(angle) + a * Math.sin(angle);
      }
      return x;
    }
  }

  /** Sparse experts of one row. */
  record Experts(
      int numExpertsPerToken,
      TestMatrix router,
      TestMatrix gate,
      TestMatrix up,
      TestMatrix down,
      TestMatrix sharedGate,
      TestMatrix sharedUp,
      TestMatrix sharedDown,
      TestMatrix sharedExpertGate) {

    double[] run(double[] n) {
      return run(n, router.multiply(0, n));
    }

    /** With router logits that were computed elsewhere. */
    double[] run(double[] n, double[] p) {
      double[] out = new double[n.length];
      boolean[] taken = new boolean[p.length];
      int[] chosen = new int[numExpertsPerToken];
      double sum = 0;
      for (int rank = 0; rank < numExpertsPerToken; rank++) {
        int best = -1;
        for (int e = 0; e < p.length; e++) {
          if (!taken[e] && (best < 0 || p[e] > p[best])) {
            best = e;
          }
        }
        taken[best] = true;
        chosen[rank] = best;
        sum += Math.exp(p[best] - p[chosen[0]]);
      }
      for (int e : chosen) {
        add(out, Math.exp(p[e] - p[chosen[0]]) / sum, expert(gate, up, down, e, n));
      }
      double weight = sigmoid(sharedExpertGate.multiply(0, n)[0]);
      add(out, weight, expert(sharedGate, sharedUp, sharedDown, 0, n));
      return out;
    }

    private static void add(double[] out, double weight, double[] x) {
      for (int i = 0; i < out.length; i++) {
        out[i] += weight * x[i];
      }
    }

    private static double[] expert(
        TestMatrix gate, TestMatrix up, TestMatrix down, int e, double[] n) {
      double[] g = gate.multiply(e, n);
      double[] u = up.multiply(e, n);
      for (int i = 0; i < g.length; i++) {
        g[i] = silu(g[i]) * u[i];
      }
      return down.multiply(e, g);
    }
  }
}
