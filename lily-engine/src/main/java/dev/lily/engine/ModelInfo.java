package dev.lily.engine;

import java.util.List;

/**
 * What is loaded.
 *
 * @param name directory name of the checkpoint
 * @param modelType the checkpoint's {@code model_type}
 * @param parameters all weights, quantised ones counted once each
 * @param weightBytes bytes of the text weights
 * @param contextLength tokens of one conversation
 * @param backend id of the back end
 * @param device the device in words
 * @param deviceDetail kernel family, threads and the like
 * @param backendReason why this back end was taken and each other passed over
 * @param kvCache what keys and values are kept as, in the word of a configuration
 * @param notes oddities of the checkpoint and its template, one sentence each
 */
public record ModelInfo(
    String name,
    String modelType,
    long parameters,
    long weightBytes,
    int contextLength,
    String backend,
    String device,
    String deviceDetail,
    String backendReason,
    String kvCache,
    List<String> notes) {
  public ModelInfo {
    notes = List.copyOf(notes);
  }
}
