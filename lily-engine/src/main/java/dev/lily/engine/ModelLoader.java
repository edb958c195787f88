package dev.lily.engine;

import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.BackendSelector;
import dev.lily.engine.backend.UnsupportedKeyValueTypeException;
import dev.lily.engine.chat.ChatTemplate;
import dev.lily.engine.checkpoint.Checkpoint;
import dev.lily.engine.checkpoint.CheckpointException;
import dev.lily.engine.checkpoint.CheckpointException.Kind;
import dev.lily.engine.model.qwen35moe.Qwen35Config;
import dev.lily.engine.model.qwen35moe.Qwen35Moe;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.engine.tokenizer.Tokenizer;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/**
 * Opens a checkpoint on a back end. What was opened is closed again when a later step fails.
 * Internal to Lily; applications use {@link LilyEngine#open}.
 */
public final class ModelLoader {
  private static final Logger log = LoggerFactory.getLogger(ModelLoader.class);

  private ModelLoader() {}

  /**
   * Loads a model.
   *
   * @throws CheckpointException if the directory is unusable
   * @throws dev.lily.engine.backend.BackendException if no back end can run it
   * @throws UnsupportedKeyValueTypeException if the back end cannot keep keys and values as asked
   * @throws ModelDoesNotFitException if the memory plan exceeds the budget
   */
  public static LoadedModel load(EngineOptions options) {
    Deque<AutoCloseable> opened = new ArrayDeque<>();
    try {
      Checkpoint checkpoint = Checkpoint.open(options.model());
      opened.push(checkpoint);
      String modelType = checkpoint.config().path("model_type").asString("");
      return switch (modelType) {
        case Qwen35Config.MODEL_TYPE -> loadQwen35(options, checkpoint, opened);
        default ->
            throw new CheckpointException(
                Kind.UNSUPPORTED,
                configFile(checkpoint),
                "model_type is '%s'; Lily runs '%s' (Qwen3.6-35B-A3B and its kin)"
                    .formatted(modelType, Qwen35Config.MODEL_TYPE));
      };
    } catch (RuntimeException | Error e) {
      closeAll(opened, e);
      throw e;
    }
  }

  private static LoadedModel loadQwen35(
      EngineOptions options, Checkpoint checkpoint, Deque<AutoCloseable> opened) {
    Qwen35Config config = Qwen35Config.read(checkpoint.config(), configFile(checkpoint));
    Tokenizer tokenizer = Tokenizer.read(checkpoint.directory());
    if (tokenizer.vocabularySize() > config.vocabSize()) {
      throw new CheckpointException(
          Kind.CORRUPT,
          checkpoint.directory(),
          "The tokenizer has %d tokens, but the model only %d (vocab_size). Do the files belong together?"
              .formatted(tokenizer.vocabularySize(), config.vocabSize()));
    }
    Chosen chosen = open(options, config, checkpoint, tokenizer.vocabularySize());
    Backend backend = chosen.backend;
    opened.push(backend);
    MemoryPlanner.Sizes sizes = chosen.sizes;
    Qwen35Moe model = Qwen35Moe.open(config, checkpoint, backend, sizes.layout(), sizes.limits());
    opened.push(model);

    List<String> notes = new ArrayList<>(checkpoint.notes());
    templateNote(checkpoint.directory()).ifPresent(notes::add);
    MemoryPlan plan = sizes.plan();
    ModelInfo info =
        new ModelInfo(
            Optional.ofNullable(checkpoint.directory().toAbsolutePath().normalize().getFileName())
                .map(Path::toString)
                .orElse("model"),
            Qwen35Config.MODEL_TYPE,
            model.parameters(),
            Qwen35Moe.weightBytes(checkpoint),
            plan.contextLength(),
            backend.id(),
            backend.device().name(),
            backend.device().detail(),
            chosen.selection.reason(),
            options.kvCache().word(),
            notes);
    report(info, plan);
    opened.pop();
    return new LoadedModel(
        model,
        tokenizer,
        new ChatTemplate(),
        stopTokens(config, tokenizer),
        generationDefaults(checkpoint.generationConfig()),
        info,
        plan,
        List.copyOf(opened.reversed()));
  }

  private record Chosen(
      BackendSelector.Selection selection, Backend backend, MemoryPlanner.Sizes sizes) {}

  /**
   * Opens the first back end that the model fits. One that the user named is not passed over; why
   * another one was is logged and part of the reason.
   */
  private static Chosen open(
      EngineOptions options, Qwen35Config config, Checkpoint checkpoint, int vocabulary) {
    BackendSelector.Selection selection = BackendSelector.select(options.backend());
    while (true) {
      try {
        return open(selection, options, config, checkpoint, vocabulary);
      } catch (UnsupportedKeyValueTypeException e) {
        // Another back end might do it, but a slower one is not what was asked for.
        throw e;
      } catch (BackendException | ModelDoesNotFitException e) {
        String why = String.valueOf(e.getMessage()).lines().findFirst().orElse("");
        Optional<BackendSelector.Selection> next = selection.next(why);
        if (next.isEmpty()) {
          throw e;
        }
        log.warn(
            "Back end {} is passed over for {}, which is slower: {}",
            selection.provider().id(),
            next.get().provider().id(),
            e.getMessage());
        selection = next.get();
      }
    }
  }

  private static Chosen open(
      BackendSelector.Selection selection,
      EngineOptions options,
      Qwen35Config config,
      Checkpoint checkpoint,
      int vocabulary) {
    Backend backend = selection.provider().open(options.backendOptions());
    try {
      UnsupportedKeyValueTypeException.check(backend, options.kvCache());
      long files = checkpoint.mappings().stream().mapToLong(MemorySegment::byteSize).sum();
      long weightBytes = backend.weightBytes(Qwen35Moe.weightBytes(checkpoint), files);
      MemoryPlanner planner = new MemoryPlanner(config, backend, options, weightBytes, vocabulary);
      return new Chosen(selection, backend, planner.plan());
    } catch (RuntimeException | Error e) {
      closeAll(new ArrayDeque<>(List.of(backend)), e);
      throw e;
    }
  }

  private static Path configFile(Checkpoint checkpoint) {
    return checkpoint.directory().resolve("config.json");
  }

  private static int[] stopTokens(Qwen35Config config, Tokenizer tokenizer) {
    if (!config.eosTokens().isEmpty()) {
      return config.eosTokens().stream().mapToInt(Integer::intValue).toArray();
    }
    return tokenizer.addedToken("<|im_end|>").stream().toArray();
  }

  private static SamplingOptions generationDefaults(JsonNode config) {
    boolean greedy = !config.path("do_sample").asBoolean(true);
    return SamplingOptions.builder()
        .temperature(greedy ? Double.valueOf(0) : number(config, "temperature"))
        .topK(config.path("top_k").isIntegralNumber() ? config.path("top_k").asInt() : null)
        .topP(number(config, "top_p"))
        .minP(number(config, "min_p"))
        .repetitionPenalty(number(config, "repetition_penalty"))
        .build();
  }

  private static @Nullable Double number(JsonNode config, String field) {
    return config.path(field).isNumber() ? config.path(field).asDouble() : null;
  }

  /** The checkpoint's own template is compared with the one Lily renders, never ignored. */
  private static Optional<String> templateNote(Path directory) {
    Path file = directory.resolve("chat_template.jinja");
    try {
      String template;
      if (Files.exists(file)) {
        template = Files.readString(file);
      } else {
        Path tokenizerConfig = directory.resolve("tokenizer_config.json");
        template =
            Files.exists(tokenizerConfig)
                ? JsonMapper.shared()
                    .readTree(Files.readString(tokenizerConfig))
                    .path("chat_template")
                    .asString("")
                : "";
      }
      if (template.isEmpty()) {
        return Optional.of("The checkpoint has no chat template; Lily renders Qwen3.6's.");
      }
      return ChatTemplate.isKnown(template)
          ? Optional.empty()
          : Optional.of(
              "The checkpoint's chat template differs from Qwen3.6's, which Lily renders instead;"
                  + " answers may suffer.");
    } catch (IOException | JacksonException e) {
      return Optional.of("The checkpoint's chat template cannot be read: " + e.getMessage());
    }
  }

  private static void report(ModelInfo info, MemoryPlan plan) {
    log.info("{}", StartupSummary.of(info, plan));
    info.notes().forEach(note -> log.warn("{}", note));
  }

  private static void closeAll(Deque<AutoCloseable> opened, Throwable cause) {
    for (AutoCloseable resource : opened) {
      try {
        resource.close();
      } catch (Exception e) {
        cause.addSuppressed(e);
      }
    }
  }
}
