package dev.lily.engine;

import dev.lily.engine.chat.ChatTemplate;
import dev.lily.engine.model.ScriptedModel;
import dev.lily.engine.model.ScriptedModel.Script;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.engine.tokenizer.Tokenizer;
import java.nio.file.Path;
import java.util.List;

/**
 * Engines whose model follows a script, with the tokenizer of the test model in {@code
 * lily.nano.dir}. For tests of this module and of those above it.
 */
public final class ScriptedEngine {
  private static final Path DIRECTORY = Path.of(System.getProperty("lily.nano.dir"));
  private static final Tokenizer TOKENIZER = Tokenizer.read(DIRECTORY);
  private static final int END = TOKENIZER.addedToken("<|im_end|>").orElseThrow();
  private static final int CONTEXT_LENGTH = 2048;

  private ScriptedEngine() {}

  /** The test model's tokenizer. */
  public static Tokenizer tokenizer() {
    return TOKENIZER;
  }

  /**
   * A model that says a text and ends its turn, whatever it is asked. With thinking on, the text
   * starts inside the reasoning.
   */
  public static ScriptedModel.Builder saying(String text) {
    return following(Script.saying(answer(text)));
  }

  /** A model that follows a script over this tokenizer's ids. */
  public static ScriptedModel.Builder following(Script script) {
    return ScriptedModel.builder(script)
        .vocabularySize(TOKENIZER.vocabularySize())
        .pages(8 * CONTEXT_LENGTH / 16, 16);
  }

  /** The ids of a text with the end token behind it. */
  public static int[] answer(String text) {
    return TOKENIZER.encode(text + "<|im_end|>");
  }

  /** An engine with default options. */
  public static LilyEngine open(ScriptedModel model) {
    return open(model, options().build());
  }

  /** Default options, which name the directory of the test model. */
  public static EngineOptions.Builder options() {
    return EngineOptions.builder(DIRECTORY);
  }

  /** An engine over the model, which it closes. */
  public static LilyEngine open(ScriptedModel model, EngineOptions options) {
    return open(model, options, List.of());
  }

  static LilyEngine open(
      ScriptedModel model, EngineOptions options, List<AutoCloseable> resources) {
    int contextLength = options.contextLength() == null ? CONTEXT_LENGTH : options.contextLength();
    return new LilyEngine(
        new LoadedModel(
            model,
            TOKENIZER,
            new ChatTemplate(),
            new int[] {END},
            SamplingOptions.builder().temperature(0.6).minP(0.05).build(),
            new ModelInfo(
                "scripted",
                "scripted",
                0,
                0,
                contextLength,
                "scripted",
                "script",
                "",
                "",
                "bf16",
                List.of()),
            plan(model, options, contextLength),
            resources),
        options);
  }

  /** A byte for each token of KV and for each snapshot. */
  private static MemoryPlan plan(ScriptedModel model, EngineOptions options, int contextLength) {
    int snapshots = model.states().maxSnapshots();
    long cache = options.cacheBytes() == null ? 1 << 20 : options.cacheBytes();
    return new MemoryPlan(
        0,
        0,
        1,
        0,
        snapshots,
        snapshots == 0 ? 0 : cache,
        0,
        0,
        contextLength,
        options.maxSessions());
  }
}
