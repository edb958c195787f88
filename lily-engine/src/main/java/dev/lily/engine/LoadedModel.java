package dev.lily.engine;

import dev.lily.engine.chat.ChatTemplate;
import dev.lily.engine.model.LanguageModel;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.engine.tokenizer.Tokenizer;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A model with everything a request needs. Internal to Lily: its tools use it to drive a model
 * without the scheduler.
 *
 * @param stopTokens ids that end an answer
 * @param generationDefaults from {@code generation_config.json}
 * @param resources what the model stands on, in the order it was opened, without the model itself
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

  public LoadedModel {
    resources = List.copyOf(resources);
  }

  /**
   * Closes the model, then the resources, the last opened first. Each is closed even if one before
   * it fails.
   */
  @Override
  public void close() {
    RuntimeException failure = close(model, null);
    for (AutoCloseable resource : resources.reversed()) {
      failure = close(resource, failure);
    }
    if (failure != null) {
      throw failure;
    }
  }

  private static @Nullable RuntimeException close(
      AutoCloseable resource, @Nullable RuntimeException earlier) {
    try {
      resource.close();
      return earlier;
    } catch (Exception e) {
      RuntimeException failure =
          e instanceof RuntimeException unchecked
              ? unchecked
              : new IllegalStateException("A part of the model could not be closed: " + e, e);
      if (earlier == null) {
        return failure;
      }
      earlier.addSuppressed(failure);
      return earlier;
    }
  }
}
