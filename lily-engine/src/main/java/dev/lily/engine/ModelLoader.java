package dev.lily.engine;

/** Opens a checkpoint directory. */
final class ModelLoader {
  private ModelLoader() {}

  static LoadedModel load(EngineOptions options) {
    throw new UnsupportedOperationException(options.toString());
  }
}
