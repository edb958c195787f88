package dev.lily.engine.backend.cpu;

import dev.lily.engine.backend.RowPlan;

/** Cosines and sines of the current pass's positions, computed in double precision. */
final class RotaryTable {
  private final float[] cos;
  private final float[] sin;
  private double[] frequencies = {};
  private double theta;
  private int pairs;
  private boolean current;

  RotaryTable(int maxRows, int headDim) {
    cos = new float[maxRows * headDim / 2];
    sin = new float[maxRows * headDim / 2];
  }

  /** Forgets the angles: a new pass has other positions. */
  void clear() {
    current = false;
  }

  /** Computes the angles of the plan's rows, unless this pass has done so. */
  void prepare(RowPlan plan, int rotaryDim, double ropeTheta) {
    if (frequencies.length == 0 || theta != ropeTheta || pairs != rotaryDim / 2) {
      theta = ropeTheta;
      pairs = rotaryDim / 2;
      frequencies = new double[pairs];
      for (int j = 0; j < pairs; j++) {
        frequencies[j] = Math.pow(ropeTheta, -2.0 * j / rotaryDim);
      }
      current = false;
    }
    if (current) {
      return;
    }
    for (int r = 0; r < plan.numRows(); r++) {
      int position = plan.positionOf(r);
      for (int j = 0; j < pairs; j++) {
        double angle = position * frequencies[j];
        cos[r * pairs + j] = (float) Math.cos(angle);
        sin[r * pairs + j] = (float) Math.sin(angle);
      }
    }
    current = true;
  }

  /** Rotates the pairs {@code (j, j + rotaryDim / 2)} of a head at a row's position. */
  void rotate(int row, float[] head, int offset) {
    for (int j = 0; j < pairs; j++) {
      float c = cos[row * pairs + j];
      float s = sin[row * pairs + j];
      float x = head[offset + j];
      float y = head[offset + j + pairs];
      head[offset + j] = x * c - y * s;
      head[offset + j + pairs] = y * c + x * s;
    }
  }
}
