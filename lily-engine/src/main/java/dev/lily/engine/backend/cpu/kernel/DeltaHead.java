package dev.lily.engine.backend.cpu.kernel;

/**
 * Inputs of one step of the delta rule for one value head, and where its output goes. A mutable
 * holder that belongs to one thread and is filled anew for each step.
 */
public final class DeltaHead {
  private float[] vectors = new float[0];
  private float[] output = new float[0];
  private int keyDim;
  private int valueDim;
  private int query;
  private int key;
  private int value;
  private int out;
  private float decay;
  private float beta;

  /**
   * Says where the vectors lie for the steps that follow.
   *
   * @param vectors holds query, key and value
   */
  public void arrays(float[] vectors, float[] output, int keyDim, int valueDim) {
    this.vectors = vectors;
    this.output = output;
    this.keyDim = keyDim;
    this.valueDim = valueDim;
  }

  /** Offsets of the step's vectors, and its gates. */
  public void step(int query, int key, int value, int out, float decay, float beta) {
    this.query = query;
    this.key = key;
    this.value = value;
    this.out = out;
    this.decay = decay;
    this.beta = beta;
  }

  public float[] vectors() {
    return vectors;
  }

  public float[] output() {
    return output;
  }

  public int keyDim() {
    return keyDim;
  }

  public int valueDim() {
    return valueDim;
  }

  public int query() {
    return query;
  }

  public int key() {
    return key;
  }

  public int value() {
    return value;
  }

  public int out() {
    return out;
  }

  public float decay() {
    return decay;
  }

  public float beta() {
    return beta;
  }
}
