package dev.lily.spring.autoconfigure;

import dev.lily.engine.EngineOptions;
import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.KeyValueType;
import dev.lily.engine.chat.Conversation;
import dev.lily.engine.generation.GenerationRequest;
import dev.lily.engine.generation.InvalidRequestException;
import dev.lily.engine.generation.SpeculationOptions;
import dev.lily.engine.sampling.InvalidSamplingException;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.spring.ai.LilyChatOptions;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.DataObjectPropertyName;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.util.unit.DataSize;

/** Validates {@link LilyProperties} and turns them into options; an error names the property. */
final class PropertyMapper {

  private static final List<String> KERNELS = List.of("auto", "vector", "scalar");
  private static final List<String> WEIGHTS = List.of("auto", "mapped", "packed");
  private static final List<String> TENSOR_OPERATIONS = List.of("auto", "always", "never");

  private static final List<String> KV_CACHES =
      Arrays.stream(KeyValueType.values()).map(KeyValueType::word).toList();

  private PropertyMapper() {}

  /**
   * How to open the engine. Checks every property, so that a wrong one is found before a model is
   * loaded.
   *
   * @throws MissingModelException if no model is named
   * @throws InvalidConfigurationPropertyValueException naming the property that is wrong
   */
  static EngineOptions engineOptions(LilyProperties properties) {
    checkLimits(properties.chat());
    shutdownGrace(properties);
    EngineOptions.Builder options =
        EngineOptions.builder(model(properties.model()))
            .backend(backend(properties.backend()))
            .backendOptions(backendOptions(properties.cpu(), properties.metal()))
            .kvCache(KeyValueType.of(oneOf("lily.kv-cache", properties.kvCache(), KV_CACHES)))
            .maxSessions(atLeast("lily.max-sessions", properties.maxSessions(), 1))
            .queueLimit(atLeast("lily.queue-limit", properties.queueLimit(), 0))
            .prefillChunk(atLeast("lily.prefill-chunk", properties.prefillChunk(), 1))
            .maxStepTime(positive("lily.max-step-time", properties.maxStepTime()))
            .memoryLimitBytes(memoryLimit(properties.memoryLimit()))
            .cacheBytes(cacheBytes(properties.cache().bytes()))
            .snapshotInterval(
                atLeast("lily.cache.snapshot-interval", properties.cache().snapshotInterval(), 0))
            .pinSystemPrompt(properties.cache().pin())
            .cacheDirectory(cacheDirectory(properties.cache().dir()))
            .cacheDiskBytes(cacheDiskBytes(properties.cache().diskBytes()))
            .speculation(speculation(properties.speculation()))
            .defaults(sampling(properties.chat()))
            .stallTimeout(positive("lily.stall-timeout", properties.stallTimeout()));
    if (properties.queueTimeout() != null) {
      options.queueTimeout(positive("lily.queue-timeout", properties.queueTimeout()));
    }
    if (properties.contextLength() != null) {
      options.contextLength(atLeast("lily.context-length", properties.contextLength(), 1));
    }
    return options.build();
  }

  /**
   * Options of prompts that have none.
   *
   * @throws InvalidConfigurationPropertyValueException naming the property that is wrong
   */
  static LilyChatOptions chatOptions(LilyProperties.Chat chat) {
    sampling(chat);
    checkLimits(chat);
    return LilyChatOptions.builder()
        .temperature(chat.temperature())
        .topP(chat.topP())
        .topK(chat.topK())
        .minP(chat.minP())
        .presencePenalty(chat.presencePenalty())
        .frequencyPenalty(chat.frequencyPenalty())
        .repetitionPenalty(chat.repetitionPenalty())
        .maxTokens(chat.maxTokens())
        .minTokens(chat.minTokens())
        .seed(chat.seed())
        .stopSequences(chat.stop())
        .thinking(chat.thinking())
        .preserveThinking(chat.preserveThinking())
        .timeout(chat.timeout())
        .build();
  }

  /**
   * How long running answers may go on when the application stops.
   *
   * @throws InvalidConfigurationPropertyValueException if it is negative
   */
  static Duration shutdownGrace(LilyProperties properties) {
    Duration grace = properties.shutdownGrace();
    if (grace.isNegative()) {
      throw invalid("lily.shutdown-grace", grace, "it must not be negative");
    }
    return grace;
  }

  private static Path model(@Nullable String model) {
    if (model == null || model.isBlank()) {
      throw new MissingModelException();
    }
    return path("lily.model", model);
  }

  private static Path path(String property, String path) {
    try {
      return path.startsWith("~/")
          ? Path.of(System.getProperty("user.home"), path.substring(2))
          : Path.of(path);
    } catch (InvalidPathException e) {
      throw invalid(property, path, "it is not a path of this system: " + e.getReason());
    }
  }

  private static @Nullable Path cacheDirectory(@Nullable String directory) {
    return directory == null || directory.isBlank() ? null : path("lily.cache.dir", directory);
  }

  private static long cacheDiskBytes(DataSize bytes) {
    if (bytes.toBytes() <= 0) {
      throw invalid(
          "lily.cache.disk-bytes",
          bytes,
          "it must be positive; leave lily.cache.dir out for no disk");
    }
    return bytes.toBytes();
  }

  private static String backend(String backend) {
    if (backend.isBlank()) {
      throw invalid("lily.backend", backend, "it must be auto or a back end's name");
    }
    return backend;
  }

  private static BackendOptions backendOptions(LilyProperties.Cpu cpu, LilyProperties.Metal metal) {
    return new BackendOptions(
        atLeast("lily.cpu.threads", cpu.threads(), 0),
        oneOf("lily.cpu.kernels", cpu.kernels(), KERNELS),
        oneOf("lily.cpu.weights", cpu.weights(), WEIGHTS),
        positive("lily.metal.gpu-time", metal.gpuTime()),
        oneOf("lily.metal.tensor-operations", metal.tensorOperations(), TENSOR_OPERATIONS));
  }

  private static String oneOf(String property, String word, List<String> words) {
    if (!words.contains(word)) {
      throw invalid(property, word, "it must be one of " + String.join(", ", words));
    }
    return word;
  }

  private static @Nullable Long memoryLimit(@Nullable DataSize limit) {
    if (limit == null) {
      return null;
    }
    if (limit.toBytes() <= 0) {
      throw invalid("lily.memory-limit", limit, "it must be positive");
    }
    return limit.toBytes();
  }

  private static @Nullable Long cacheBytes(@Nullable DataSize bytes) {
    if (bytes == null) {
      return null;
    }
    if (bytes.isNegative()) {
      throw invalid("lily.cache.bytes", bytes, "it must not be negative; 0 turns the cache off");
    }
    return bytes.toBytes();
  }

  private static SpeculationOptions speculation(LilyProperties.Speculation speculation) {
    int draftTokens = atLeast("lily.speculation.draft-tokens", speculation.draftTokens(), 1);
    if (draftTokens > SpeculationOptions.MAX_DRAFT_TOKENS) {
      throw invalid(
          "lily.speculation.draft-tokens",
          draftTokens,
          "it must be at most " + SpeculationOptions.MAX_DRAFT_TOKENS);
    }
    return new SpeculationOptions(speculation.mode(), draftTokens);
  }

  private static SamplingOptions sampling(LilyProperties.Chat chat) {
    try {
      return SamplingOptions.builder()
          .temperature(chat.temperature())
          .topK(chat.topK())
          .topP(chat.topP())
          .minP(chat.minP())
          .presencePenalty(chat.presencePenalty())
          .frequencyPenalty(chat.frequencyPenalty())
          .repetitionPenalty(chat.repetitionPenalty())
          .seed(chat.seed())
          .build();
    } catch (InvalidSamplingException e) {
      throw invalidChat(chat, e.option(), e.getMessage());
    }
  }

  /** Lets the engine's own request check the limits. */
  private static void checkLimits(LilyProperties.Chat chat) {
    try {
      GenerationRequest.builder(Conversation.of())
          .maxTokens(chat.maxTokens())
          .minTokens(chat.minTokens() == null ? 0 : chat.minTokens())
          .stopStrings(chat.stop() == null ? List.of() : chat.stop())
          .timeout(chat.timeout())
          .build();
    } catch (InvalidRequestException e) {
      throw invalidChat(chat, e.parameter(), e.getMessage());
    }
  }

  private static InvalidConfigurationPropertyValueException invalidChat(
      LilyProperties.Chat chat, String option, @Nullable String reason) {
    String name = option.equals("stopStrings") ? "stop" : option;
    String property = "lily.chat." + DataObjectPropertyName.toDashedForm(name);
    return invalid(property, value(chat, name), reason == null ? "" : reason);
  }

  private static @Nullable Object value(LilyProperties.Chat chat, String option) {
    return switch (option) {
      case "temperature" -> chat.temperature();
      case "topK" -> chat.topK();
      case "topP" -> chat.topP();
      case "minP" -> chat.minP();
      case "presencePenalty" -> chat.presencePenalty();
      case "frequencyPenalty" -> chat.frequencyPenalty();
      case "repetitionPenalty" -> chat.repetitionPenalty();
      case "maxTokens" -> chat.maxTokens();
      case "minTokens" -> chat.minTokens();
      case "stop" -> chat.stop();
      case "timeout" -> chat.timeout();
      default -> null;
    };
  }

  private static int atLeast(String property, int value, int min) {
    if (value < min) {
      throw invalid(property, value, "it must be at least " + min);
    }
    return value;
  }

  private static Duration positive(String property, Duration value) {
    if (!value.isPositive()) {
      throw invalid(property, value, "it must be positive");
    }
    return value;
  }

  private static InvalidConfigurationPropertyValueException invalid(
      String property, @Nullable Object value, String reason) {
    return new InvalidConfigurationPropertyValueException(property, value, reason);
  }
}
