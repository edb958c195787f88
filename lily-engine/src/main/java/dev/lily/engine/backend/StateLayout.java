package dev.lily.engine.backend;

/**
 * Sizes of everything that sequences own on a device.
 *
 * @param numAttentionLayers layers with a KV cache; a page spans all of them
 * @param numKeyValueHeads KV heads per attention layer
 * @param headDim elements per KV head
 * @param keyValueType what keys and values are kept as
 * @param pageTokens tokens per KV page
 * @param numPages pages in the pool
 * @param numDeltaLayers layers with a recurrent state
 * @param convKernel taps of the causal convolution; the window keeps {@code convKernel - 1} inputs
 * @param convDim channels of the convolution
 * @param numValueHeads value heads of a delta layer
 * @param keyDim elements per key head
 * @param valueDim elements per value head
 * @param numSlots recurrent slots: one per running sequence and one per snapshot
 * @param numSamplingSlots sampling slots: one per running sequence
 * @param vocabularySize real tokens; sampling sees ids below it only
 */
public record StateLayout(
    int numAttentionLayers,
    int numKeyValueHeads,
    int headDim,
    KeyValueType keyValueType,
    int pageTokens,
    int numPages,
    int numDeltaLayers,
    int convKernel,
    int convDim,
    int numValueHeads,
    int keyDim,
    int valueDim,
    int numSlots,
    int numSamplingSlots,
    int vocabularySize) {

  /** With keys and values in bf16. */
  public StateLayout(
      int numAttentionLayers,
      int numKeyValueHeads,
      int headDim,
      int pageTokens,
      int numPages,
      int numDeltaLayers,
      int convKernel,
      int convDim,
      int numValueHeads,
      int keyDim,
      int valueDim,
      int numSlots,
      int numSamplingSlots,
      int vocabularySize) {
    this(
        numAttentionLayers,
        numKeyValueHeads,
        headDim,
        KeyValueType.BF16,
        pageTokens,
        numPages,
        numDeltaLayers,
        convKernel,
        convDim,
        numValueHeads,
        keyDim,
        valueDim,
        numSlots,
        numSamplingSlots,
        vocabularySize);
  }

  /** The same sizes with keys and values kept as another type. */
  public StateLayout with(KeyValueType type) {
    return new StateLayout(
        numAttentionLayers,
        numKeyValueHeads,
        headDim,
        type,
        pageTokens,
        numPages,
        numDeltaLayers,
        convKernel,
        convDim,
        numValueHeads,
        keyDim,
        valueDim,
        numSlots,
        numSamplingSlots,
        vocabularySize);
  }

  /**
   * Everything that decides what the bytes of a page and a slot mean, in words: the same for
   * layouts that differ in nothing but how many there are.
   */
  public String format() {
    return toString().replaceAll("num(Pages|Slots|SamplingSlots)=[0-9]+(, )?", "");
  }

  /** Values (keys and values together) that one page holds over all attention layers. */
  public long pageElements() {
    return 2L * numAttentionLayers * pageTokens * numKeyValueHeads * headDim;
  }

  /** fp32 elements of one slot: recurrent states and convolution windows of all delta layers. */
  public long slotElements() {
    return (long) numDeltaLayers
        * ((long) numValueHeads * keyDim * valueDim + (long) (convKernel - 1) * convDim);
  }
}
