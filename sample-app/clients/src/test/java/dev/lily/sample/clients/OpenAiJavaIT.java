package dev.lily.sample.clients;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.openai.client.OpenAIClient;
import com.openai.client.okhttp.OpenAIOkHttpClient;
import com.openai.core.JsonValue;
import com.openai.core.RequestOptions;
import com.openai.core.http.StreamResponse;
import com.openai.errors.BadRequestException;
import com.openai.errors.NotFoundException;
import com.openai.errors.OpenAIIoException;
import com.openai.errors.UnauthorizedException;
import com.openai.helpers.ChatCompletionAccumulator;
import com.openai.models.FunctionDefinition;
import com.openai.models.FunctionParameters;
import com.openai.models.ReasoningEffort;
import com.openai.models.ResponseFormatJsonSchema;
import com.openai.models.chat.completions.ChatCompletion;
import com.openai.models.chat.completions.ChatCompletionChunk;
import com.openai.models.chat.completions.ChatCompletionCreateParams;
import com.openai.models.chat.completions.ChatCompletionFunctionTool;
import com.openai.models.chat.completions.ChatCompletionMessage;
import com.openai.models.chat.completions.ChatCompletionMessageFunctionToolCall;
import com.openai.models.chat.completions.ChatCompletionMessageToolCall;
import com.openai.models.chat.completions.ChatCompletionStreamOptions;
import com.openai.models.chat.completions.ChatCompletionToolMessageParam;
import com.openai.models.models.Model;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

/** OpenAI's own Java client. */
@Timeout(120)
@ExtendWith(SampleServer.Provider.class)
class OpenAiJavaIT {

  static final ChatCompletionFunctionTool TOOL =
      ChatCompletionFunctionTool.builder()
          .function(
              FunctionDefinition.builder()
                  .name(Weather.TOOL)
                  .description(Weather.DESCRIPTION)
                  .parameters(
                      FunctionParameters.builder()
                          .putAdditionalProperty("type", JsonValue.from("object"))
                          .putAdditionalProperty(
                              "properties",
                              JsonValue.from(
                                  Map.of(
                                      "city", Map.of("type", "string", "description", "The city"))))
                          .putAdditionalProperty("required", JsonValue.from(List.of("city")))
                          .build())
                  .build())
          .build();

  /** The tool's arguments. */
  static final class City {
    public String city;
  }

  private final SampleServer server;
  private final OpenAIClient client;

  OpenAiJavaIT(SampleServer server) {
    this.server = server;
    client = client(SampleServer.KEY);
  }

  private OpenAIClient client(String key) {
    return OpenAIOkHttpClient.builder().baseUrl(server.apiUrl()).apiKey(key).maxRetries(0).build();
  }

  @AfterEach
  void close() {
    client.close();
  }

  private static ChatCompletionCreateParams.Builder ask(String question) {
    return ChatCompletionCreateParams.builder().model(SampleServer.MODEL).addUserMessage(question);
  }

  private static ChatCompletionCreateParams.Builder askForWeather() {
    return ChatCompletionCreateParams.builder()
        .model(SampleServer.MODEL)
        .addSystemMessage(Weather.SYSTEM)
        .addUserMessage(Weather.QUESTION)
        .addTool(TOOL);
  }

  private ChatCompletion create(ChatCompletionCreateParams.Builder params) {
    // Strict: every field that the client knows must have the right type.
    return client.chat().completions().create(params.build()).validate();
  }

  private ChatCompletion stream(ChatCompletionCreateParams.Builder params, List<String> pieces) {
    ChatCompletionAccumulator accumulator = ChatCompletionAccumulator.create();
    ChatCompletionStreamOptions usage =
        ChatCompletionStreamOptions.builder().includeUsage(true).build();
    try (StreamResponse<ChatCompletionChunk> chunks =
        client.chat().completions().createStreaming(params.streamOptions(usage).build())) {
      chunks.stream()
          .map(ChatCompletionChunk::validate)
          .peek(accumulator::accumulate)
          .flatMap(chunk -> chunk.choices().stream())
          .flatMap(choice -> choice.delta().content().stream())
          .filter(piece -> !piece.isEmpty())
          .forEach(pieces::add);
    }
    return accumulator.chatCompletion();
  }

  @Test
  void listsAndGetsModels() {
    assertThat(client.models().list().data())
        .extracting(Model::id)
        .containsExactly(SampleServer.MODEL);
    assertThat(client.models().retrieve(SampleServer.MODEL).validate().ownedBy()).isEqualTo("lily");
  }

  @Test
  void answersWithUsage() {
    ChatCompletion completion = create(ask(Questions.SUM));
    ChatCompletion.Choice choice = completion.choices().getFirst();
    assertThat(choice.message().content()).contains(Questions.SUM_ANSWER);
    assertThat(choice.finishReason()).isEqualTo(ChatCompletion.Choice.FinishReason.STOP);
    var usage = completion.usage().orElseThrow();
    assertThat(usage.promptTokens()).isPositive();
    assertThat(usage.totalTokens()).isEqualTo(usage.promptTokens() + usage.completionTokens());
  }

  @Test
  void streamsTheSameAnswerInPiecesWithUsage() {
    List<String> pieces = new ArrayList<>();
    ChatCompletion streamed = stream(ask(Questions.SUM), pieces);
    ChatCompletion whole = create(ask(Questions.SUM));
    assertThat(pieces).hasSizeGreaterThan(1);
    assertThat(streamed.choices().getFirst().message().content())
        .isEqualTo(whole.choices().getFirst().message().content());
    assertThat(streamed.choices().getFirst().finishReason())
        .isEqualTo(ChatCompletion.Choice.FinishReason.STOP);
    assertThat(streamed.usage()).isEqualTo(whole.usage());
  }

  @Test
  void keepsReasoningOutOfTheAnswer() {
    ChatCompletion completion = create(ask(Questions.DAY).reasoningEffort(ReasoningEffort.HIGH));
    ChatCompletionMessage message = completion.choices().getFirst().message();
    assertThat(message.content()).contains(Questions.DAY_ANSWER);
    assertThat(message._additionalProperties().get("reasoning_content"))
        .isEqualTo(JsonValue.from(Questions.DAY_REASONING));
  }

  @Test
  void runsToolsInALoop() {
    runsTools(this::create);
  }

  @Test
  void runsToolsInALoopOfStreams() {
    runsTools(params -> stream(params, new ArrayList<>()));
  }

  private void runsTools(Function<ChatCompletionCreateParams.Builder, ChatCompletion> model) {
    ChatCompletionCreateParams.Builder params = askForWeather();
    ChatCompletion.Choice first = model.apply(params).choices().getFirst();
    assertThat(first.finishReason()).isEqualTo(ChatCompletion.Choice.FinishReason.TOOL_CALLS);
    params.addMessage(first.message());
    List<String> asked = new ArrayList<>();
    for (ChatCompletionMessageToolCall call : first.message().toolCalls().orElseThrow()) {
      ChatCompletionMessageFunctionToolCall function = call.asFunction();
      String city = function.function().arguments(City.class).city;
      asked.add(city);
      params.addMessage(
          ChatCompletionToolMessageParam.builder()
              .toolCallId(function.id())
              .content(Weather.in(city))
              .build());
    }
    assertThat(asked).containsExactly("Rome", "Cairo");
    Optional<String> answer = model.apply(params).choices().getFirst().message().content();
    assertThat(answer.orElseThrow()).contains("Rome").contains("Cairo");
  }

  @Test
  void mapsErrors() {
    NotFoundException notFound =
        catchThrowableOfType(
            NotFoundException.class, () -> create(ask(Questions.SUM).model("other")));
    assertThat(notFound.code()).contains("model_not_found");
    assertThat(notFound.param()).contains("model");
    BadRequestException bad =
        catchThrowableOfType(BadRequestException.class, () -> create(ask(Questions.SUM).topP(2.0)));
    assertThat(bad.param()).contains("top_p");
    BadRequestException tooLong =
        catchThrowableOfType(
            BadRequestException.class, () -> stream(ask(Questions.LONG), new ArrayList<>()));
    assertThat(tooLong.code()).contains("context_length_exceeded");
    OpenAIClient stranger = client("wrong");
    UnauthorizedException unauthorized =
        catchThrowableOfType(UnauthorizedException.class, () -> stranger.models().list());
    assertThat(unauthorized.code()).contains("invalid_api_key");
    stranger.close();
  }

  private static ChatCompletionCreateParams endless() {
    return ask(Questions.STORY)
        .putAdditionalBodyProperty("min_tokens", JsonValue.from(SampleServer.ENDLESS))
        .build();
  }

  @Test
  void stopsTheEngineWhenAStreamIsClosed() throws Exception {
    server.stopsWhen(
        () -> {
          try (StreamResponse<ChatCompletionChunk> stream =
              client.chat().completions().createStreaming(endless())) {
            Iterator<ChatCompletionChunk> chunks = stream.stream().iterator();
            for (int i = 0; i < 5; i++) {
              chunks.next();
            }
          }
        });
  }

  @Test
  void stopsTheEngineWhenACallTakesTooLong() throws Exception {
    RequestOptions twoSeconds = RequestOptions.builder().timeout(Duration.ofSeconds(2)).build();
    server.stopsWhen(
        () ->
            assertThatThrownBy(() -> client.chat().completions().create(endless(), twoSeconds))
                .isInstanceOf(OpenAIIoException.class));
  }

  @Test
  void answersByAJsonSchema() {
    ResponseFormatJsonSchema format =
        ResponseFormatJsonSchema.builder()
            .jsonSchema(
                ResponseFormatJsonSchema.JsonSchema.builder()
                    .name("sum")
                    .schema(
                        ResponseFormatJsonSchema.JsonSchema.Schema.builder()
                            .putAdditionalProperty("type", JsonValue.from("object"))
                            .putAdditionalProperty(
                                "properties",
                                JsonValue.from(Map.of("sum", Map.of("type", "integer"))))
                            .putAdditionalProperty("required", JsonValue.from(List.of("sum")))
                            .putAdditionalProperty("additionalProperties", JsonValue.from(false))
                            .build())
                    .build())
            .build();
    ChatCompletion completion = create(ask(Questions.SUM).responseFormat(format));
    assertThat(completion.choices().getFirst().message().content().orElseThrow())
        .matches("\\s*\\{\\s*\"sum\"\\s*:\\s*-?\\d+\\s*}\\s*");
  }
}
