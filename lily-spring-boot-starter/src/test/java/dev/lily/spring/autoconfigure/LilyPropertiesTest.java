package dev.lily.spring.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.lily.engine.EngineOptions;
import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.KeyValueType;
import dev.lily.engine.generation.SpeculationOptions;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.spring.ai.LilyChatOptions;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.RecordComponent;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.context.properties.bind.Bindable;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.context.properties.bind.DataObjectPropertyName;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.boot.context.properties.source.MapConfigurationPropertySource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

class LilyPropertiesTest {

  private static LilyProperties bind(String... pairs) {
    Map<String, String> values = new TreeMap<>();
    for (String pair : pairs) {
      int equals = pair.indexOf('=');
      values.put(pair.substring(0, equals), pair.substring(equals + 1));
    }
    return new Binder(new MapConfigurationPropertySource(values))
        .bindOrCreate(LilyProperties.PREFIX, Bindable.of(LilyProperties.class));
  }

  @Test
  void defaultsAreTheEnginesOwn() {
    assertThat(PropertyMapper.engineOptions(bind("lily.model=some/where")))
        .isEqualTo(EngineOptions.builder(Path.of("some/where")).build());
    assertThat(PropertyMapper.chatOptions(bind().chat()))
        .isEqualTo(LilyChatOptions.builder().build());
    assertThat(PropertyMapper.shutdownGrace(bind())).isEqualTo(Duration.ofSeconds(20));
  }

  @Test
  void mapsEveryEngineProperty() {
    EngineOptions options =
        PropertyMapper.engineOptions(
            bind(
                "lily.model=/models/m",
                "lily.backend=cpu",
                "lily.kv-cache=int8",
                "lily.context-length=4096",
                "lily.max-sessions=3",
                "lily.queue-limit=0",
                "lily.queue-timeout=7s",
                "lily.prefill-chunk=64",
                "lily.max-step-time=80ms",
                "lily.memory-limit=2GB",
                "lily.cache.bytes=64MB",
                "lily.cache.snapshot-interval=512",
                "lily.cache.pin=true",
                "lily.cache.dir=/var/cache/lily",
                "lily.cache.disk-bytes=3GB",
                "lily.speculation.mode=prompt-lookup",
                "lily.speculation.draft-tokens=5",
                "lily.stall-timeout=5s",
                "lily.shutdown-grace=0s",
                "lily.cpu.threads=4",
                "lily.cpu.kernels=scalar",
                "lily.cpu.weights=mapped",
                "lily.metal.gpu-time=250ms",
                "lily.metal.tensor-operations=never",
                "lily.chat.temperature=0.3",
                "lily.chat.seed=11"));
    assertThat(options)
        .isEqualTo(
            EngineOptions.builder(Path.of("/models/m"))
                .backend("cpu")
                .kvCache(KeyValueType.INT8)
                .contextLength(4096)
                .maxSessions(3)
                .queueLimit(0)
                .queueTimeout(Duration.ofSeconds(7))
                .prefillChunk(64)
                .maxStepTime(Duration.ofMillis(80))
                .memoryLimitBytes(2L << 30)
                .cacheBytes(64L << 20)
                .snapshotInterval(512)
                .pinSystemPrompt(true)
                .cacheDirectory(Path.of("/var/cache/lily"))
                .cacheDiskBytes(3L << 30)
                .speculation(new SpeculationOptions(SpeculationOptions.Mode.PROMPT_LOOKUP, 5))
                .stallTimeout(Duration.ofSeconds(5))
                .backendOptions(
                    new BackendOptions(4, "scalar", "mapped", Duration.ofMillis(250), "never"))
                .defaults(SamplingOptions.builder().temperature(0.3).seed(11L).build())
                .build());
  }

  @Test
  void mapsEveryChatProperty() {
    assertThat(
            PropertyMapper.chatOptions(
                bind(
                        "lily.chat.temperature=0.6",
                        "lily.chat.top-p=0.95",
                        "lily.chat.top-k=20",
                        "lily.chat.min-p=0.05",
                        "lily.chat.presence-penalty=0.5",
                        "lily.chat.frequency-penalty=0.25",
                        "lily.chat.repetition-penalty=1.1",
                        "lily.chat.max-tokens=100",
                        "lily.chat.min-tokens=3",
                        "lily.chat.seed=42",
                        "lily.chat.stop=END,STOP",
                        "lily.chat.thinking=false",
                        "lily.chat.preserve-thinking=true",
                        "lily.chat.timeout=2m")
                    .chat()))
        .isEqualTo(
            LilyChatOptions.builder()
                .temperature(0.6)
                .topP(0.95)
                .topK(20)
                .minP(0.05)
                .presencePenalty(0.5)
                .frequencyPenalty(0.25)
                .repetitionPenalty(1.1)
                .maxTokens(100)
                .minTokens(3)
                .seed(42L)
                .stopSequences(List.of("END", "STOP"))
                .thinking(false)
                .preserveThinking(true)
                .timeout(Duration.ofMinutes(2))
                .build());
  }

  @ParameterizedTest
  @CsvSource({
    "lily.max-sessions, 0, it must be at least 1",
    "lily.queue-limit, -1, it must be at least 0",
    "lily.queue-timeout, 0s, it must be positive",
    "lily.prefill-chunk, 0, it must be at least 1",
    "lily.max-step-time, 0s, it must be positive",
    "lily.context-length, 0, it must be at least 1",
    "lily.memory-limit, 0B, it must be positive",
    "lily.cache.bytes, -1B, it must not be negative; 0 turns the cache off",
    "lily.cache.snapshot-interval, -1, it must be at least 0",
    "lily.cache.disk-bytes, 0B, it must be positive; leave lily.cache.dir out for no disk",
    "lily.speculation.draft-tokens, 0, it must be at least 1",
    "lily.speculation.draft-tokens, 65, it must be at most 64",
    "lily.stall-timeout, 0s, it must be positive",
    "lily.shutdown-grace, -1s, it must not be negative",
    "lily.backend, ' ', it must be auto or a back end's name",
    "lily.kv-cache, int4, 'it must be one of bf16, int8, fp32'",
    "lily.cpu.threads, -1, it must be at least 0",
    "lily.cpu.kernels, fast, 'it must be one of auto, vector, scalar'",
    "lily.cpu.weights, here, 'it must be one of auto, mapped, packed'",
    "lily.metal.gpu-time, 0s, it must be positive",
    "lily.metal.tensor-operations, yes, 'it must be one of auto, always, never'",
    "lily.chat.temperature, -0.1, 'temperature is -0.1; it must be at least 0.0 and at most 100.0'",
    "lily.chat.top-k, -2, 'topK is -2; it must be at least 1, or 0 or -1 to turn it off'",
    "lily.chat.top-p, 1.5, topP is 1.5; it must be at least 0.0 and at most 1.0",
    "lily.chat.min-p, 2, minP is 2.0; it must be at least 0.0 and at most 1.0",
    "lily.chat.presence-penalty, 3, presencePenalty is 3.0; it must be at least -2.0 and at most 2.0",
    "lily.chat.frequency-penalty, 3, frequencyPenalty is 3.0; it must be at least -2.0 and at most 2.0",
    "lily.chat.repetition-penalty, 0, repetitionPenalty is 0.0; it must be above 0 and at most 10.0",
    "lily.chat.max-tokens, 0, maxTokens is 0; it must be at least 1",
    "lily.chat.min-tokens, -1, minTokens is -1; it must be between 0 and maxTokens (null)",
    "lily.chat.timeout, 0s, timeout is PT0S; it must be positive",
  })
  void refusesAWrongValueNamingTheProperty(String property, String value, String reason) {
    LilyProperties properties = bind("lily.model=m", property + "=" + value);
    assertThatExceptionOfType(InvalidConfigurationPropertyValueException.class)
        .isThrownBy(() -> PropertyMapper.engineOptions(properties))
        .satisfies(
            e -> {
              assertThat(e.getName()).isEqualTo(property);
              assertThat(e.getValue()).isNotNull();
              assertThat(e.getReason()).isEqualTo(reason);
            });
  }

  @Test
  void refusesTooManyStopTexts() {
    LilyProperties properties = bind("lily.model=m", "lily.chat.stop=" + "x,".repeat(16) + "x");
    assertThatExceptionOfType(InvalidConfigurationPropertyValueException.class)
        .isThrownBy(() -> PropertyMapper.engineOptions(properties))
        .satisfies(e -> assertThat(e.getName()).isEqualTo("lily.chat.stop"));
  }

  @Test
  void refusesToGoOnWithoutAModel() {
    for (LilyProperties properties : List.of(bind(), bind("lily.model="), bind("lily.model= "))) {
      assertThatExceptionOfType(MissingModelException.class)
          .isThrownBy(() -> PropertyMapper.engineOptions(properties));
    }
  }

  @Test
  void readsALeadingTildeAsTheHomeDirectory() {
    assertThat(PropertyMapper.engineOptions(bind("lily.model=~/models/m")).model())
        .isEqualTo(Path.of(System.getProperty("user.home"), "models", "m"));
  }

  @Test
  void publishesMetadataWithADescriptionOfEveryProperty() throws IOException {
    JsonNode metadata;
    try (InputStream file =
        LilyProperties.class.getResourceAsStream("/META-INF/spring-configuration-metadata.json")) {
      assertThat(file).as("the annotation processor's output").isNotNull();
      metadata = JsonMapper.shared().readTree(file);
    }
    Map<String, String> descriptions = new TreeMap<>();
    for (JsonNode property : metadata.path("properties")) {
      descriptions.put(property.path("name").asString(), property.path("description").asString(""));
    }
    List<String> names = propertyNames(LilyProperties.PREFIX, LilyProperties.class);
    assertThat(names)
        .contains(
            "lily.model", "lily.cpu.kernels", "lily.metal.tensor-operations", "lily.chat.min-p");
    assertThat(names).allSatisfy(name -> assertThat(descriptions.get(name)).as(name).isNotBlank());
    assertThat(metadata.path("hints").findValuesAsString("name"))
        .contains("spring.ai.model.chat", "lily.backend", "lily.kv-cache", "lily.cpu.kernels");
  }

  private static List<String> propertyNames(String prefix, Class<?> type) {
    List<String> names = new ArrayList<>();
    for (RecordComponent component : type.getRecordComponents()) {
      String name = prefix + "." + DataObjectPropertyName.toDashedForm(component.getName());
      if (component.getType().isRecord()) {
        names.addAll(propertyNames(name, component.getType()));
      } else {
        names.add(name);
      }
    }
    return names;
  }
}
