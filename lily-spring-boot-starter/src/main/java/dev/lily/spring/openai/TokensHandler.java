package dev.lily.spring.openai;

import java.util.Arrays;
import java.util.List;
import java.util.function.Function;
import org.springframework.http.MediaType;
import org.springframework.web.reactive.function.server.ServerRequest;
import org.springframework.web.reactive.function.server.ServerResponse;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;
import tools.jackson.databind.JsonNode;

/** Answers {@code POST /tokenize} and {@code POST /detokenize}. */
final class TokensHandler {

  /**
   * The tokens of a text.
   *
   * @param maxModelLen most tokens of a prompt and its answer
   */
  record Tokens(int count, int maxModelLen, List<Integer> tokens) {}

  /** The text of tokens. */
  record Text(String prompt) {}

  private final CommonFields common;
  private final ServedModel model;
  private final BodyReader bodies;
  private final Scheduler scheduler;

  TokensHandler(ServedModel model, OpenAiOptions options, Scheduler scheduler) {
    this.model = model;
    this.scheduler = scheduler;
    common = new CommonFields(model.name(), options);
    bodies = new BodyReader(options.maxRequestBytes(), options.requestTimeout());
  }

  Mono<ServerResponse> tokenize(ServerRequest request) {
    return answer(request, this::tokens);
  }

  Mono<ServerResponse> detokenize(ServerRequest request) {
    return answer(request, this::text);
  }

  private Mono<ServerResponse> answer(
      ServerRequest request, Function<FieldReader, Object> operation) {
    return bodies
        .read(request)
        .publishOn(scheduler)
        .map(
            body -> {
              FieldReader fields = FieldReader.of(WireJson.read(body));
              common.checkModel(fields);
              Object answer = operation.apply(fields);
              IgnoredFields.report(fields.unread(), request);
              return WireJson.bytes(answer);
            })
        .flatMap(
            body -> ServerResponse.ok().contentType(MediaType.APPLICATION_JSON).bodyValue(body));
  }

  private Tokens tokens(FieldReader fields) {
    String prompt = fields.string("prompt");
    if (prompt == null) {
      throw ApiError.invalidValue("prompt", "prompt is missing; send the text to tokenize.")
          .exception();
    }
    int[] ids = model.tokenizer().encode(prompt, new int[] {0, prompt.length()});
    return new Tokens(ids.length, model.contextLength(), Arrays.stream(ids).boxed().toList());
  }

  private Text text(FieldReader fields) {
    JsonNode tokens = fields.node("tokens");
    if (tokens == null || !tokens.isArray()) {
      throw ApiError.invalidValue("tokens", "tokens is missing; send an array of token ids.")
          .exception();
    }
    return new Text(
        TokenIdReader.text(TokenIdReader.read(fields, "tokens", tokens), model, "tokens"));
  }
}
