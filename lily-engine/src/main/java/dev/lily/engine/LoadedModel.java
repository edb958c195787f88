package dev.lily.engine;

import dev.lily.engine.chat.ChatTemplate;
import dev.lily.engine.model.LanguageModel;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.engine.tokenizer.Tokenizer;
import java.util.ArrayList;
import java.util.List;

/**
 * Everything an engine is made of. Internal to Lily: its own tools use it to drive a model without
 * a scheduler. Closing it closes the model, then the resources.
 *
 * @param stopTokens ids that end an answer
 * @param generationDefaults sampling defaults of the checkpoint's {@code generation_config.json}
 * @param resources to close after the model, in this order
 */
public record LoadedModel(
    LanguageModel model,
    Tokenizer tokenizer,
    ChatTemplate template,
    int[] stopTokens,
    SamplingOptions generationDefaults,
    ModelInfo info,
    MemoryPlan plan,
    List<AutoCloseable> resources)
    implements AutoCloseable {
  @Override
  public void close() {
    RuntimeException failure = null;
    List<AutoCloseable> inOrder = new ArrayList<>(List.of(model));
    inOrder.addAll(resources);
    for (AutoCloseable resource : inOrder) {
      try {
        resource.close();
      } catch (Exception e) {
        if (failure == null) {
          failure = new IllegalStateException("Closing the model failed", e);
        } else {
          failure.addSuppressed(e);
        }
      }
    }
    if (failure != null) {
      throw failure;
    }
  }
}
