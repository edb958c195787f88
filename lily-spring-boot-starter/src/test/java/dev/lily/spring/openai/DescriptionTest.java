package dev.lily.spring.openai;

import static dev.lily.spring.openai.ScriptedEngine.completed;
import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.generation.FinishReason;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.http.HttpMethod;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

/** The description says what the endpoint does, and the documentation says the same. */
class DescriptionTest extends EndpointTest {
  private static final Map<String, String> MINIMAL =
      Map.of(
          "/chat/completions", "{'messages':[{'role':'user','content':'hi'}]}",
          "/completions", "{'prompt':'a'}",
          "/responses", "{'input':'hi'}",
          "/tokenize", "{'prompt':'a'}",
          "/detokenize", "{'tokens':[1]}");

  private static JsonNode description(EndpointServer server) {
    return Json.read(
        EndpointServer.text(
            server.client().get().uri("/v1/openapi.json").exchange().expectStatus().isOk()));
  }

  private EndpointServer serve() {
    return serve(completed(FinishReason.STOP));
  }

  @Test
  void namesTheBasePath() {
    assertThat(description(serve()).path("servers")).isEqualTo(Json.read("[{\"url\":\"/v1\"}]"));
    assertThat(description(serve()).path("openapi").stringValue()).isEqualTo("3.1.0");
  }

  @Test
  void hasEveryPathThatIsServedAndNoOther() {
    EndpointServer server = serve();
    JsonNode paths = description(server).path("paths");
    List<String> answering = new ArrayList<>();
    for (String path :
        List.of(
            "/chat/completions",
            "/completions",
            "/responses",
            "/tokenize",
            "/detokenize",
            "/embeddings",
            "/models",
            "/models/{id}",
            "/openapi.json")) {
      for (HttpMethod method : List.of(HttpMethod.GET, HttpMethod.POST)) {
        String uri = "/v1" + path.replace("{id}", EndpointServer.MODEL);
        int status =
            server.client().method(method).uri(uri).exchange().returnResult().getStatus().value();
        if (status != 404 && status != 405) {
          answering.add(method.name().toLowerCase() + " " + path);
        }
      }
    }
    List<String> described = new ArrayList<>();
    paths
        .properties()
        .forEach(
            path ->
                path.getValue()
                    .propertyNames()
                    .forEach(method -> described.add(method + " " + path.getKey())));
    assertThat(described).containsExactlyInAnyOrderElementsOf(answering);
  }

  @Test
  void refersOnlyToWhatIsThere() {
    JsonNode description = description(serve());
    List<JsonNode> references = description.findValues("$ref");
    assertThat(references).isNotEmpty();
    for (JsonNode reference : references) {
      assertThat(description.at(reference.stringValue().substring(1)).isObject())
          .as(reference.stringValue())
          .isTrue();
    }
  }

  private static ObjectNode fields(JsonNode description, String path) {
    String schema =
        description
            .at("/paths/" + path.replace("/", "~1") + "/post/requestBody/content")
            .path("application/json")
            .path("schema")
            .path("$ref")
            .stringValue();
    return (ObjectNode) description.at(schema.substring(1)).path("properties");
  }

  /** A field that the endpoint reads cannot have every type. */
  @ParameterizedTest
  @ValueSource(
      strings = {"/chat/completions", "/completions", "/responses", "/tokenize", "/detokenize"})
  void hasOnlyFieldsThatTheEndpointReads(String path) {
    EndpointServer server = serve();
    String minimal = MINIMAL.get(path).replace('\'', '"');
    server.postTo("/v1" + path, minimal).expectStatus().isOk();
    for (String field : fields(description(server), path).propertyNames()) {
      List<String> refused = new ArrayList<>();
      for (String wrong : List.of("{\"type\":7}", "[[{}]]", "-7.5", "\"no such value\"")) {
        ObjectNode body = (ObjectNode) Json.read(minimal);
        body.set(field, Json.read(wrong));
        if (field.equals("top_logprobs") && path.startsWith("/chat")) {
          body.put("logprobs", true);
        }
        JsonNode answer =
            Json.read(
                new String(
                    server
                        .postTo("/v1" + path, body.toString())
                        .expectBody()
                        .returnResult()
                        .getResponseBodyContent()));
        if (answer.path("error").path("param").asString("").startsWith(field)) {
          refused.add(wrong);
        }
      }
      assertThat(refused).as(field).isNotEmpty();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"/chat/completions", "/completions", "/responses"})
  void hasTheFieldsThatTheDocumentationSaysAreHonoured(String path) throws IOException {
    String documentation = Files.readString(Path.of("..", "docs", "openai-api.md"));
    Matcher section =
        Pattern.compile("### `POST /v1" + path + "`\\n(.*?)(?=\\n##)", Pattern.DOTALL)
            .matcher(documentation);
    assertThat(section.find()).as("a section for " + path).isTrue();
    Set<String> documented = new TreeSet<>();
    for (String row : section.group(1).split("\n")) {
      if (row.startsWith("| `") && !row.contains("| refused") && !row.contains("| ignored")) {
        Matcher name = Pattern.compile("`([a-z_]+)[^`]*`").matcher(row.split("\\|")[1]);
        while (name.find()) {
          documented.add(name.group(1));
        }
      }
    }
    Set<String> described = new TreeSet<>();
    fields(description(serve()), path).propertyNames().forEach(described::add);
    assertThat(documented).isEqualTo(described);
  }
}
