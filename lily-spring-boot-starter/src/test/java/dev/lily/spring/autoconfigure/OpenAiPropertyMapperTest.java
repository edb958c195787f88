package dev.lily.spring.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.spring.openai.OpenAiOptions;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.springframework.boot.context.properties.bind.Bindable;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.context.properties.bind.DataObjectPropertyName;
import org.springframework.boot.context.properties.source.MapConfigurationPropertySource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

class OpenAiPropertyMapperTest {

  private static OpenAiOptions options(String... pairs) throws IOException {
    Map<String, String> values = new TreeMap<>();
    for (String pair : pairs) {
      int equals = pair.indexOf('=');
      values.put(pair.substring(0, equals), pair.substring(equals + 1));
    }
    Binder binder = new Binder(new MapConfigurationPropertySource(values));
    return OpenAiPropertyMapper.options(
        binder.bindOrCreate(LilyOpenAiProperties.PREFIX, Bindable.of(LilyOpenAiProperties.class)),
        binder.bindOrCreate(LilyProperties.PREFIX, Bindable.of(LilyProperties.class)).chat(),
        InetAddress.getByName("127.0.0.1"));
  }

  @Test
  void defaultsAreTheEndpointsOwn() throws IOException {
    assertThat(options()).isEqualTo(OpenAiOptions.builder().build());
  }

  @Test
  void mapsEveryProperty() throws IOException {
    assertThat(
            options(
                "lily.openai.enabled=true",
                "lily.openai.base-path=/api",
                "lily.openai.api-keys=k1,k2",
                "lily.openai.allowed-hosts=lily.lan,[fe80::1]",
                "lily.openai.allowed-origins=https://chat.example,null",
                "lily.openai.model-aliases=gpt-4o",
                "lily.openai.max-request-size=1KB",
                "lily.openai.request-timeout=5s",
                "lily.openai.max-choices=2",
                "lily.openai.heartbeat=3s",
                "lily.chat.max-tokens=100",
                "lily.chat.min-tokens=3",
                "lily.chat.thinking=false",
                "lily.chat.preserve-thinking=true",
                "lily.chat.stop=END",
                "lily.chat.timeout=1m",
                "lily.chat.seed=5"))
        .isEqualTo(
            OpenAiOptions.builder()
                .basePath("/api")
                .apiKeys(List.of("k1", "k2"))
                .allowedHosts(List.of("lily.lan", "[fe80::1]"))
                .allowedOrigins(List.of("https://chat.example", "null"))
                .modelAliases(List.of("gpt-4o"))
                .maxRequestBytes(1024)
                .requestTimeout(Duration.ofSeconds(5))
                .maxChoices(2)
                .heartbeat(Duration.ofSeconds(3))
                .defaults(
                    new OpenAiOptions.Defaults(
                        100, 3, false, true, List.of("END"), Duration.ofMinutes(1), 5L))
                .build());
  }

  @Test
  void takesASlashAsTheRoot() throws IOException {
    assertThat(options("lily.openai.base-path=/").basePath()).isEmpty();
  }

  @Test
  void takesASizeBeyondAllArraysAsNoLimit() throws IOException {
    assertThat(options("lily.openai.max-request-size=1TB").maxRequestBytes())
        .isEqualTo(Integer.MAX_VALUE);
  }

  @Test
  void publishesMetadataWithADescriptionOfEveryProperty() throws IOException {
    JsonNode metadata;
    try (InputStream file =
        LilyOpenAiProperties.class.getResourceAsStream(
            "/META-INF/spring-configuration-metadata.json")) {
      assertThat(file).as("the annotation processor's output").isNotNull();
      metadata = JsonMapper.shared().readTree(file);
    }
    Map<String, String> descriptions = new TreeMap<>();
    for (JsonNode property : metadata.path("properties")) {
      descriptions.put(property.path("name").asString(), property.path("description").asString(""));
    }
    List<String> names = new ArrayList<>();
    Arrays.stream(LilyOpenAiProperties.class.getRecordComponents())
        .map(component -> DataObjectPropertyName.toDashedForm(component.getName()))
        .forEach(name -> names.add(LilyOpenAiProperties.PREFIX + "." + name));
    assertThat(names).hasSize(10).contains("lily.openai.enabled", "lily.openai.max-request-size");
    assertThat(names).allSatisfy(name -> assertThat(descriptions.get(name)).as(name).isNotBlank());
  }
}
