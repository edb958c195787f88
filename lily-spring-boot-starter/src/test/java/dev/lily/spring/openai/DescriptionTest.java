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
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.http.HttpMethod;
import org.springframework.test.web.reactive.server.WebTestClient;
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

  private static final Path PAGE = Path.of("..", "docs", "openai-api.md");

  /** The names in the first column of the table of an operation's fields, by its second column. */
  private static Set<String> documented(String path, Predicate<String> rule) throws IOException {
    Matcher table =
        Pattern.compile("### `POST /v1" + path + "`\\n\\n(.*?)\\n\\n", Pattern.DOTALL)
            .matcher(Files.readString(PAGE));
    assertThat(table.find()).as("a table for " + path).isTrue();
    Set<String> names = new TreeSet<>();
    for (String row : table.group(1).split("\n")) {
      String[] cells = row.split("\\|");
      if (row.startsWith("| `") && rule.test(cells[2].strip())) {
        Matcher name = Pattern.compile("`([a-z_]+)[^`]*`").matcher(cells[1]);
        while (name.find()) {
          names.add(name.group(1));
        }
      }
    }
    return names;
  }

  @ParameterizedTest
  @ValueSource(strings = {"/chat/completions", "/completions", "/responses"})
  void hasTheFieldsThatTheDocumentationSaysAreHonoured(String path) throws IOException {
    Set<String> described = new TreeSet<>();
    fields(description(serve()), path).propertyNames().forEach(described::add);
    assertThat(documented(path, rule -> !rule.startsWith("refused") && !rule.startsWith("ignored")))
        .isEqualTo(described);
  }

  @ParameterizedTest
  @ValueSource(strings = {"/chat/completions", "/completions", "/responses"})
  void refusesWhatTheDocumentationSaysIsRefused(String path) throws IOException {
    EndpointServer server = serve();
    Set<String> refused = documented(path, rule -> rule.startsWith("refused"));
    assertThat(refused).isNotEmpty();
    for (String field : refused) {
      ObjectNode body = (ObjectNode) Json.read(MINIMAL.get(path).replace('\'', '"'));
      body.put(field, "x");
      WebTestClient.ResponseSpec answer = server.postTo("/v1" + path, body.toString());
      answer.expectStatus().isBadRequest();
      assertThat(error(answer).path("param").stringValue()).as(field).isEqualTo(field);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"/chat/completions", "/completions", "/responses"})
  void takesWhatTheDocumentationSaysIsIgnored(String path) throws IOException {
    EndpointServer server = serve();
    Set<String> ignored = documented(path, rule -> rule.startsWith("ignored"));
    assertThat(ignored).isNotEmpty();
    ObjectNode body = (ObjectNode) Json.read(MINIMAL.get(path).replace('\'', '"'));
    ignored.forEach(field -> body.set(field, Json.read("{\"a\":[1]}")));
    server.postTo("/v1" + path, body.toString()).expectStatus().isOk();
  }

  /** Whatever the code looks for in a body by its name, also deep inside, a client may know. */
  @Test
  void readsNoFieldThatTheDocumentationDoesNotName() throws IOException {
    Pattern read =
        Pattern.compile(
            "\\.(?:string|strings|bool|isTrue|integer|longInteger|decimal|object|node|has|path)\\(\\s*\"([a-z_]+)\"");
    Set<String> names = new TreeSet<>();
    for (Path sources :
        List.of(
            Path.of("src", "main", "java", "dev", "lily", "spring", "openai"),
            Path.of("..", "lily-engine", "src", "main", "java", "dev", "lily", "engine", "chat"))) {
      try (Stream<Path> files = Files.list(sources)) {
        for (Path file : files.filter(DescriptionTest::readsRequests).toList()) {
          read.matcher(Files.readString(file)).results().forEach(name -> names.add(name.group(1)));
        }
      }
    }
    assertThat(names).contains("best_of", "generate_summary", "reasoning_content", "top_k");
    String page = Files.readString(PAGE);
    assertThat(names)
        .allMatch(name -> Pattern.compile("[`.{\"]" + name + "\\b").matcher(page).find());
  }

  private static boolean readsRequests(Path file) {
    return Pattern.compile("(Mapper|Reader|Fields|Input|ToolUse|TokensHandler)\\.java")
        .matcher(file.getFileName().toString())
        .find();
  }
}
