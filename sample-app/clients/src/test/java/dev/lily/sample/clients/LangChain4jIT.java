package dev.lily.sample.clients;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.langchain4j.agent.tool.ToolExecutionRequest;
import dev.langchain4j.agent.tool.ToolSpecification;
import dev.langchain4j.data.message.ChatMessage;
import dev.langchain4j.data.message.SystemMessage;
import dev.langchain4j.data.message.ToolExecutionResultMessage;
import dev.langchain4j.data.message.UserMessage;
import dev.langchain4j.exception.AuthenticationException;
import dev.langchain4j.exception.InvalidRequestException;
import dev.langchain4j.exception.ModelNotFoundException;
import dev.langchain4j.model.catalog.ModelDescription;
import dev.langchain4j.model.chat.request.ChatRequest;
import dev.langchain4j.model.chat.request.ResponseFormat;
import dev.langchain4j.model.chat.request.ResponseFormatType;
import dev.langchain4j.model.chat.request.json.JsonObjectSchema;
import dev.langchain4j.model.chat.request.json.JsonSchema;
import dev.langchain4j.model.chat.response.ChatResponse;
import dev.langchain4j.model.chat.response.PartialResponse;
import dev.langchain4j.model.chat.response.PartialResponseContext;
import dev.langchain4j.model.chat.response.StreamingChatResponseHandler;
import dev.langchain4j.model.openai.OpenAiChatModel;
import dev.langchain4j.model.openai.OpenAiLanguageModel;
import dev.langchain4j.model.openai.OpenAiModelCatalog;
import dev.langchain4j.model.openai.OpenAiStreamingChatModel;
import dev.langchain4j.model.output.FinishReason;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

/** LangChain4j's model of the OpenAI API. */
@Timeout(120)
@ExtendWith(SampleServer.Provider.class)
class LangChain4jIT {
  private static final ToolSpecification TOOL =
      ToolSpecification.builder()
          .name(Weather.TOOL)
          .description(Weather.DESCRIPTION)
          .parameters(
              JsonObjectSchema.builder()
                  .addStringProperty("city", "The city")
                  .required("city")
                  .build())
          .build();

  private final SampleServer server;

  LangChain4jIT(SampleServer server) {
    this.server = server;
  }

  private OpenAiChatModel.OpenAiChatModelBuilder model() {
    return OpenAiChatModel.builder()
        .baseUrl(server.apiUrl())
        .apiKey(SampleServer.KEY)
        .modelName(SampleServer.MODEL)
        .returnThinking(true)
        .maxRetries(0);
  }

  private OpenAiStreamingChatModel.OpenAiStreamingChatModelBuilder streamingModel() {
    return OpenAiStreamingChatModel.builder()
        .baseUrl(server.apiUrl())
        .apiKey(SampleServer.KEY)
        .modelName(SampleServer.MODEL)
        .returnThinking(true);
  }

  private static ChatRequest ask(String question) {
    return ChatRequest.builder().messages(UserMessage.from(question)).build();
  }

  /** Collects a stream. */
  private static class Collector implements StreamingChatResponseHandler {
    final List<String> pieces = new ArrayList<>();
    final CompletableFuture<ChatResponse> response = new CompletableFuture<>();

    @Override
    public void onPartialResponse(String piece) {
      pieces.add(piece);
    }

    @Override
    public void onCompleteResponse(ChatResponse whole) {
      response.complete(whole);
    }

    @Override
    public void onError(Throwable error) {
      response.completeExceptionally(error);
    }
  }

  private ChatResponse stream(ChatRequest request) {
    Collector collector = new Collector();
    streamingModel().build().chat(request, collector);
    return collector.response.join();
  }

  @Test
  void listsModels() {
    OpenAiModelCatalog catalog =
        OpenAiModelCatalog.builder().baseUrl(server.apiUrl()).apiKey(SampleServer.KEY).build();
    assertThat(catalog.listModels())
        .extracting(ModelDescription::name)
        .containsExactly(SampleServer.MODEL);
  }

  @Test
  void answersWithUsage() {
    ChatResponse response = model().build().chat(ask(Questions.SUM));
    assertThat(response.aiMessage().text()).isEqualTo(Questions.SUM_ANSWER);
    assertThat(response.finishReason()).isEqualTo(FinishReason.STOP);
    assertThat(response.tokenUsage().inputTokenCount()).isPositive();
    assertThat(response.tokenUsage().totalTokenCount())
        .isEqualTo(
            response.tokenUsage().inputTokenCount() + response.tokenUsage().outputTokenCount());
  }

  @Test
  void streamsTheSameAnswerInPiecesWithUsage() {
    Collector collector = new Collector();
    streamingModel().build().chat(ask(Questions.SUM), collector);
    ChatResponse streamed = collector.response.join();
    ChatResponse whole = model().build().chat(ask(Questions.SUM));
    assertThat(collector.pieces).hasSizeGreaterThan(1);
    assertThat(String.join("", collector.pieces)).isEqualTo(Questions.SUM_ANSWER);
    assertThat(streamed.aiMessage()).isEqualTo(whole.aiMessage());
    assertThat(streamed.finishReason()).isEqualTo(whole.finishReason());
    assertThat(streamed.tokenUsage().totalTokenCount())
        .isEqualTo(whole.tokenUsage().totalTokenCount());
  }

  @Test
  void keepsReasoningOutOfTheAnswer() {
    ChatResponse response = model().reasoningEffort("high").build().chat(ask(Questions.DAY));
    assertThat(response.aiMessage().text()).isEqualTo(Questions.DAY_ANSWER);
    assertThat(response.aiMessage().thinking()).isEqualTo(Questions.DAY_REASONING);
  }

  @Test
  void runsToolsInALoop() {
    runsTools(model().build()::chat);
  }

  @Test
  void runsToolsInALoopOfStreams() {
    runsTools(this::stream);
  }

  private static void runsTools(Function<ChatRequest, ChatResponse> model) {
    List<ChatMessage> messages =
        new ArrayList<>(
            List.of(SystemMessage.from(Weather.SYSTEM), UserMessage.from(Weather.QUESTION)));
    ChatRequest.Builder request = ChatRequest.builder().toolSpecifications(TOOL);
    ChatResponse first = model.apply(request.messages(messages).build());
    assertThat(first.finishReason()).isEqualTo(FinishReason.TOOL_EXECUTION);
    messages.add(first.aiMessage());
    List<String> asked = new ArrayList<>();
    for (ToolExecutionRequest call : first.aiMessage().toolExecutionRequests()) {
      asked.add(call.arguments());
      String city = call.arguments().contains("Rome") ? "Rome" : "Cairo";
      messages.add(ToolExecutionResultMessage.from(call, Weather.in(city)));
    }
    assertThat(asked).containsExactly("{\"city\":\"Rome\"}", "{\"city\":\"Cairo\"}");
    ChatResponse last = model.apply(request.messages(messages).build());
    assertThat(last.aiMessage().text()).contains("Rome").contains("Cairo");
  }

  @Test
  void mapsErrors() {
    assertThatThrownBy(() -> model().modelName("other").build().chat(ask(Questions.SUM)))
        .isInstanceOf(ModelNotFoundException.class)
        .hasMessageContaining("model_not_found");
    assertThatThrownBy(() -> model().topP(2.0).build().chat(ask(Questions.SUM)))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("top_p");
    assertThatThrownBy(() -> model().apiKey("wrong").build().chat(ask(Questions.SUM)))
        .isInstanceOf(AuthenticationException.class);
    assertThatThrownBy(() -> stream(ask(Questions.LONG)))
        .cause()
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("context_length_exceeded");
  }

  @Test
  void stopsTheEngineWhenAStreamIsCancelled() throws Exception {
    server.stopsWhen(
        () -> {
          CompletableFuture<Void> cancelled = new CompletableFuture<>();
          streamingModel()
              .customParameters(Map.of("min_tokens", SampleServer.ENDLESS))
              .build()
              .chat(
                  ask(Questions.STORY),
                  new Collector() {
                    @Override
                    public void onPartialResponse(
                        PartialResponse piece, PartialResponseContext context) {
                      pieces.add(piece.text());
                      if (pieces.size() == 5) {
                        context.streamingHandle().cancel();
                        cancelled.complete(null);
                      }
                    }
                  });
          cancelled.get();
        });
  }

  @Test
  void continuesATextByTheOlderOperation() {
    OpenAiLanguageModel model =
        OpenAiLanguageModel.builder()
            .baseUrl(server.apiUrl())
            .apiKey(SampleServer.KEY)
            .modelName(SampleServer.MODEL)
            .maxRetries(0)
            .build();
    assertThat(model.generate("Lily").tokenUsage().outputTokenCount()).isPositive();
  }

  @Test
  void answersByAJsonSchema() {
    ResponseFormat format =
        ResponseFormat.builder()
            .type(ResponseFormatType.JSON)
            .jsonSchema(
                JsonSchema.builder()
                    .name("sum")
                    .rootElement(
                        JsonObjectSchema.builder()
                            .addIntegerProperty("sum")
                            .required("sum")
                            .build())
                    .build())
            .build();
    ChatResponse response = model().responseFormat(format).build().chat(ask(Questions.SUM));
    assertThat(response.aiMessage().text()).matches("\\s*\\{\\s*\"sum\"\\s*:\\s*-?\\d+\\s*}\\s*");
  }
}
