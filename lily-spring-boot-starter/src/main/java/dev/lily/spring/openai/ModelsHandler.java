package dev.lily.spring.openai;

import dev.lily.spring.openai.dto.Model;
import dev.lily.spring.openai.dto.ModelList;
import java.util.ArrayList;
import java.util.List;
import org.springframework.http.MediaType;
import org.springframework.web.reactive.function.server.ServerRequest;
import org.springframework.web.reactive.function.server.ServerResponse;
import reactor.core.publisher.Mono;

/** Answers {@code GET /models} and {@code GET /models/ID}: the loaded model and its aliases. */
final class ModelsHandler {
  static final String ID = "id";

  private final String model;
  private final List<Model> models = new ArrayList<>();

  ModelsHandler(String model, OpenAiOptions options, long created) {
    this.model = model;
    models.add(Model.of(model, created));
    options.modelAliases().stream()
        .distinct()
        .filter(alias -> !alias.equals(model))
        .forEach(alias -> models.add(Model.of(alias, created)));
  }

  Mono<ServerResponse> list(ServerRequest request) {
    return json(ModelList.of(models));
  }

  Mono<ServerResponse> get(ServerRequest request) {
    String id = request.pathVariable(ID);
    return models.stream()
        .filter(candidate -> candidate.id().equals(id))
        .findFirst()
        .map(ModelsHandler::json)
        .orElseGet(() -> Mono.error(ApiError.modelNotFound(id, model).exception()));
  }

  private static Mono<ServerResponse> json(Object body) {
    return ServerResponse.ok()
        .contentType(MediaType.APPLICATION_JSON)
        .bodyValue(WireJson.bytes(body));
  }
}
