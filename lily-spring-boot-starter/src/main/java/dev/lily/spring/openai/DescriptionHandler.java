package dev.lily.spring.openai;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import org.springframework.http.MediaType;
import org.springframework.web.reactive.function.server.ServerRequest;
import org.springframework.web.reactive.function.server.ServerResponse;
import reactor.core.publisher.Mono;
import tools.jackson.databind.node.ObjectNode;

/** Answers {@code GET /openapi.json}: the API's description, with the base path as its server. */
final class DescriptionHandler {
  private static final String RESOURCE = "openapi.json";

  private final byte[] description;

  DescriptionHandler(String basePath) {
    description = WireJson.bytes(read(basePath));
  }

  private static ObjectNode read(String basePath) {
    try (InputStream resource = DescriptionHandler.class.getResourceAsStream(RESOURCE)) {
      if (resource == null) {
        throw new IllegalStateException("The starter's jar lacks " + RESOURCE);
      }
      ObjectNode read = (ObjectNode) WireJson.read(resource.readAllBytes());
      read.putArray("servers").addObject().put("url", basePath.isEmpty() ? "/" : basePath);
      return read;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  Mono<ServerResponse> get(ServerRequest request) {
    return ServerResponse.ok().contentType(MediaType.APPLICATION_JSON).bodyValue(description);
  }
}
