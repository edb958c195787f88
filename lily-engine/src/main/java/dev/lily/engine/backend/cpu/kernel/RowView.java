package dev.lily.engine.backend.cpu.kernel;

/**
 * Rows of an activation array in an order given by an index: row {@code i} of the view starts at
 * {@code index[i] * stride}. Reused from call to call, so that choosing rows allocates nothing.
 */
public final class RowView {
  private float[] values = new float[0];
  private int[] index = new int[0];
  private int stride;

  /**
   * Chooses rows.
   *
   * @param index position of each row in {@code values}, in units of {@code stride}; kept, not
   *     copied
   */
  public void set(float[] values, int stride, int[] index) {
    this.values = values;
    this.stride = stride;
    this.index = index;
  }

  public float[] values() {
    return values;
  }

  /** Where the {@code i}-th row starts in {@link #values}. */
  public int offset(int i) {
    return index[i] * stride;
  }
}
