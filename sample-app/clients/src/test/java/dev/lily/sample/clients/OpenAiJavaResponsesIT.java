package dev.lily.sample.clients;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.openai.client.OpenAIClient;
import com.openai.client.okhttp.OpenAIOkHttpClient;
import com.openai.core.JsonValue;
import com.openai.core.http.StreamResponse;
import com.openai.errors.BadRequestException;
import com.openai.helpers.ResponseAccumulator;
import com.openai.models.completions.Completion;
import com.openai.models.completions.CompletionCreateParams;
import com.openai.models.responses.FunctionTool;
import com.openai.models.responses.Response;
import com.openai.models.responses.ResponseCreateParams;
import com.openai.models.responses.ResponseFunctionToolCall;
import com.openai.models.responses.ResponseInputItem;
import com.openai.models.responses.ResponseOutputItem;
import com.openai.models.responses.ResponseStatus;
import com.openai.models.responses.ResponseStreamEvent;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

/** OpenAI's own Java client at responses and the older completions. */
@Timeout(120)
@ExtendWith(SampleServer.Provider.class)
class OpenAiJavaResponsesIT {
  private static final FunctionTool TOOL =
      FunctionTool.builder()
          .name(Weather.TOOL)
          .description(Weather.DESCRIPTION)
          .strict(false)
          .parameters(
              FunctionTool.Parameters.builder()
                  .putAdditionalProperty("type", JsonValue.from("object"))
                  .putAdditionalProperty(
                      "properties",
                      JsonValue.from(
                          Map.of("city", Map.of("type", "string", "description", "The city"))))
                  .putAdditionalProperty("required", JsonValue.from(List.of("city")))
                  .build())
          .build();

  private final OpenAIClient client;

  OpenAiJavaResponsesIT(SampleServer server) {
    client =
        OpenAIOkHttpClient.builder()
            .baseUrl(server.apiUrl())
            .apiKey(SampleServer.KEY)
            .maxRetries(0)
            .build();
  }

  @AfterEach
  void close() {
    client.close();
  }

  private static ResponseCreateParams.Builder ask(String question) {
    return ResponseCreateParams.builder().model(SampleServer.MODEL).input(question);
  }

  private Response stream(ResponseCreateParams params) {
    ResponseAccumulator accumulator = ResponseAccumulator.create();
    try (StreamResponse<ResponseStreamEvent> events = client.responses().createStreaming(params)) {
      // Strict: every event must have the fields of its type.
      events.stream().map(ResponseStreamEvent::validate).forEach(accumulator::accumulate);
    }
    return accumulator.response().validate();
  }

  private static String text(Response response) {
    return response.output().stream()
        .flatMap(item -> item.message().stream())
        .flatMap(message -> message.content().stream())
        .map(content -> content.asOutputText().text())
        .collect(Collectors.joining());
  }

  @Test
  void answersWithUsage() {
    Response response = client.responses().create(ask(Questions.SUM).build()).validate();
    assertThat(text(response)).isEqualTo(Questions.SUM_ANSWER);
    assertThat(response.status()).contains(ResponseStatus.COMPLETED);
    assertThat(response.usage().orElseThrow().outputTokens()).isPositive();
  }

  @Test
  void streamsTheSameAnswer() {
    Response streamed = stream(ask(Questions.SUM).build());
    assertThat(text(streamed)).isEqualTo(Questions.SUM_ANSWER);
    assertThat(streamed.status()).contains(ResponseStatus.COMPLETED);
  }

  @Test
  void runsToolsInALoopOfStreams() {
    ResponseCreateParams.Builder params =
        ResponseCreateParams.builder()
            .model(SampleServer.MODEL)
            .instructions(Weather.SYSTEM)
            .addTool(TOOL);
    List<ResponseInputItem> input = new ArrayList<>();
    input.add(
        ResponseInputItem.ofMessage(
            ResponseInputItem.Message.builder()
                .role(ResponseInputItem.Message.Role.USER)
                .addInputTextContent(Weather.QUESTION)
                .build()));
    Response first = stream(params.inputOfResponse(input).build());
    List<String> asked = new ArrayList<>();
    for (ResponseOutputItem item : first.output()) {
      ResponseFunctionToolCall call = item.asFunctionCall();
      asked.add(call.arguments());
      input.add(ResponseInputItem.ofFunctionCall(call));
    }
    assertThat(asked).containsExactly("{\"city\":\"Rome\"}", "{\"city\":\"Cairo\"}");
    for (ResponseOutputItem item : first.output()) {
      ResponseFunctionToolCall call = item.asFunctionCall();
      input.add(
          ResponseInputItem.ofFunctionCallOutput(
              ResponseInputItem.FunctionCallOutput.builder()
                  .callId(call.callId())
                  .output(Weather.in(call.arguments().contains("Rome") ? "Rome" : "Cairo"))
                  .build()));
    }
    assertThat(text(stream(params.inputOfResponse(input).build())))
        .contains("Rome")
        .contains("Cairo");
  }

  @Test
  void mapsErrors() {
    BadRequestException refused =
        catchThrowableOfType(
            BadRequestException.class,
            () -> client.responses().create(ask(Questions.SUM).store(true).build()));
    assertThat(refused.param()).contains("store");
  }

  @Test
  void continuesATextByTheOlderOperation() {
    CompletionCreateParams params =
        CompletionCreateParams.builder()
            .model(SampleServer.MODEL)
            .prompt("Lily")
            .maxTokens(8)
            .putAdditionalBodyProperty("min_tokens", JsonValue.from(8))
            .logprobs(2)
            .build();
    Completion whole = client.completions().create(params).validate();
    assertThat(whole.choices().getFirst().logprobs().orElseThrow().tokens().orElseThrow())
        .hasSize(8);
    StringBuilder streamed = new StringBuilder();
    try (StreamResponse<Completion> pieces = client.completions().createStreaming(params)) {
      pieces.stream()
          .flatMap(piece -> piece.choices().stream())
          .forEach(choice -> streamed.append(choice.text()));
    }
    assertThat(streamed.toString()).isEqualTo(whole.choices().getFirst().text());
  }
}
