package dev.lily.spring.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** The documentation's tables of properties against the metadata that the build writes. */
class PropertyDocumentationTest {
  private static final Path DOCS = Path.of("..", "docs");
  private static final Pattern TABLE =
      Pattern.compile("^\\| property \\|.*\\R\\|[-| ]+\\R((?:\\|.*\\R?)+)", Pattern.MULTILINE);
  private static final Pattern NAME = Pattern.compile("`([a-z.-]+)`");

  /** Each documented property with what the table says its default is. */
  private static Map<String, String> documented() throws IOException {
    Map<String, String> defaults = new TreeMap<>();
    try (Stream<Path> pages = Files.list(DOCS)) {
      for (Path page : pages.filter(file -> file.toString().endsWith(".md")).toList()) {
        Matcher table = TABLE.matcher(Files.readString(page));
        while (table.find()) {
          table.group(1).lines().forEach(row -> addRow(defaults, row.split("\\|")));
        }
      }
    }
    return defaults;
  }

  private static void addRow(Map<String, String> defaults, String[] cells) {
    String group = "";
    Matcher names = NAME.matcher(cells[1]);
    while (names.find()) {
      String name = names.group(1);
      // Those after the first may be written without what they share with it.
      String full = name.startsWith(".") ? group + name : name;
      group = full.substring(0, full.lastIndexOf('.'));
      defaults.put(full, cells[2].replace("`", "").strip());
    }
  }

  private static Map<String, JsonNode> published() throws IOException {
    Map<String, JsonNode> properties = new TreeMap<>();
    try (InputStream file =
        LilyProperties.class.getResourceAsStream("/META-INF/spring-configuration-metadata.json")) {
      for (JsonNode property : JsonMapper.shared().readTree(file).path("properties")) {
        properties.put(property.path("name").stringValue(), property.path("defaultValue"));
      }
    }
    return properties;
  }

  @Test
  void everyPropertyIsInATableAndNoOther() throws IOException {
    assertThat(documented().keySet()).isEqualTo(published().keySet()).contains("lily.model");
  }

  /** Where a default is a single value and the table gives one, it is the same. */
  @Test
  void tablesGiveTheDefaultsThatHold() throws IOException {
    Map<String, JsonNode> published = published();
    assertThat(documented())
        .allSatisfy(
            (name, given) -> {
              JsonNode value = published.get(name);
              if (value.isValueNode() && !given.contains(" ")) {
                assertThat(given).as(name).isEqualTo(value.asString());
              }
            });
  }
}
