package dev.lily.engine;

import dev.lily.engine.chat.ChatTemplate;
import dev.lily.engine.model.LanguageModel;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.engine.tokenizer.Tokenizer;
import java.util.List;

/**
 * Everything an engine is made of.
 *
 * @param stopTokens ids that end an answer
 * @param generationDefaults sampling defaults of the checkpoint's {@code generation_config.json}
 * @param resources to close after the model, in this order
 */
record LoadedModel(
    LanguageModel model,
    Tokenizer tokenizer,
    ChatTemplate template,
    int[] stopTokens,
    SamplingOptions generationDefaults,
    ModelInfo info,
    MemoryPlan plan,
    List<AutoCloseable> resources) {}
