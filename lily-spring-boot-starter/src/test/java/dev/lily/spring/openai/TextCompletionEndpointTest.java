package dev.lily.spring.openai;

import static dev.lily.spring.openai.ScriptedEngine.answer;
import static dev.lily.spring.openai.ScriptedEngine.completed;
import static dev.lily.spring.openai.ScriptedEngine.failed;
import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.chat.ResponsePart;
import dev.lily.engine.generation.ContextOverflowException;
import dev.lily.engine.generation.EngineFailureException;
import dev.lily.engine.generation.FinishReason;
import dev.lily.engine.generation.GenerationEvent;
import dev.lily.engine.generation.GenerationRequest;
import dev.lily.engine.generation.InvalidRequestException;
import dev.lily.engine.generation.RawPrompt;
import dev.lily.engine.generation.TokenLogprob;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.test.web.reactive.server.WebTestClient;
import tools.jackson.databind.JsonNode;

class TextCompletionEndpointTest extends EndpointTest {
  private static final String PATH = "/v1/completions";

  private static WebTestClient.ResponseSpec post(EndpointServer server, String body) {
    return server.postTo(PATH, body.replace('\'', '"'));
  }

  private static JsonNode whole(EndpointServer server, String body) {
    return Json.read(EndpointServer.text(post(server, body).expectStatus().isOk()));
  }

  private static SentEvents stream(EndpointServer server, String body) {
    return SentEvents.of(
        EndpointServer.text(
            post(server, body.replaceFirst("\\{", "{'stream':true,")).expectStatus().isOk()));
  }

  /** A choice's text by its pieces. */
  private static String joined(SentEvents events, int index) {
    StringBuilder text = new StringBuilder();
    events.json().stream()
        .flatMap(piece -> piece.path("choices").valueStream())
        .filter(choice -> choice.path("index").intValue() == index)
        .forEach(choice -> text.append(choice.path("text").stringValue()));
    return text.toString();
  }

  @Test
  void answersAsAWholeAndPieceByPiece() {
    EndpointServer server = serve(answer(" b"), answer("c"), completed(FinishReason.STOP));
    JsonNode completion = whole(server, "{'prompt':'a'}");
    assertThat(completion.path("id").stringValue()).matches("cmpl-[0-9a-f]{32}");
    assertThat(completion.path("object").stringValue()).isEqualTo("text_completion");
    assertThat(completion.path("model").stringValue()).isEqualTo(EndpointServer.MODEL);
    assertThat(completion.path("choices"))
        .isEqualTo(
            Json.read(
                """
                [{"index":0,"text":" bc","logprobs":null,"finish_reason":"stop"}]"""));
    assertThat(completion.path("usage").path("total_tokens").intValue()).isEqualTo(12);

    SentEvents events = stream(server, "{'prompt':'a','stream_options':{'include_usage':true}}");
    assertThat(events.done()).isTrue();
    assertThat(joined(events, 0)).isEqualTo(" bc");
    assertThat(events.choices())
        .extracting(choice -> choice.path("finish_reason").asString("-"))
        .containsExactly("-", "-", "stop");
    assertThat(events.json().getLast().path("choices").isEmpty()).isTrue();
    assertThat(events.json().getLast().path("usage")).isEqualTo(completion.path("usage"));
    assertThat(events.json())
        .allMatch(piece -> piece.path("object").stringValue().equals("text_completion"));
  }

  @Test
  void asksTheEngineToContinueTheTextAndNothingElse() {
    EndpointServer server = serve(completed(FinishReason.LENGTH));
    whole(server, "{'prompt':'a<|im_end|>'}");
    whole(
        server,
        "{'prompt':[1,2],'max_tokens':3,'temperature':0,'stop':'x','top_k':4,'min_tokens':1}");
    GenerationRequest text = server.engine().requests.getFirst();
    assertThat(text.rawPrompt()).isEqualTo(new RawPrompt.Text("a<|im_end|>"));
    assertThat(text.maxTokens()).isEqualTo(16);
    assertThat(text.thinking()).isFalse();
    GenerationRequest tokens = server.engine().requests.getLast();
    assertThat(tokens.rawPrompt()).isEqualTo(new RawPrompt.Tokens(List.of(1, 2)));
    assertThat(tokens.maxTokens()).isEqualTo(3);
    assertThat(tokens.minTokens()).isEqualTo(1);
    assertThat(tokens.stopStrings()).containsExactly("x");
    assertThat(tokens.sampling().temperature()).isZero();
    assertThat(tokens.sampling().topK()).isEqualTo(4);
  }

  @Test
  void answersSeveralPromptsWithSeveralChoicesEach() {
    ScriptedEngine engine =
        ScriptedEngine.of(
            request -> List.of(answer("" + request.rawPrompt()), completed(FinishReason.STOP)));
    EndpointServer server = serve(engine);
    JsonNode completion = whole(server, "{'prompt':['a','b'],'n':2,'seed':1}");
    assertThat(completion.path("choices").valueStream())
        .extracting(choice -> choice.path("text").stringValue())
        .containsExactly("Text[text=a]", "Text[text=a]", "Text[text=b]", "Text[text=b]");
    assertThat(completion.path("choices").valueStream())
        .extracting(choice -> choice.path("index").intValue())
        .containsExactly(0, 1, 2, 3);
    // Each prompt counts once, each choice's tokens count.
    assertThat(completion.path("usage").path("prompt_tokens").intValue()).isEqualTo(14);
    assertThat(completion.path("usage").path("completion_tokens").intValue()).isEqualTo(20);
    assertThat(engine.requests.get(0).sampling().seed()).isEqualTo(1);
    assertThat(engine.requests.get(1).sampling().seed()).isNotEqualTo(1);
    assertThat(engine.requests.get(2).sampling().seed()).isEqualTo(1);
  }

  @Test
  void beginsWithThePromptIfAskedForAnEcho() {
    EndpointServer server = serve(answer(" c"), completed(FinishReason.STOP));
    int[] ids = EndpointServer.TOKENIZER.encode("a b", new int[] {0, 3});
    for (String prompt : List.of("'a b'", Json.array().toString().replace("[]", ids(ids)))) {
      String body = "{'echo':true,'prompt':" + prompt + "}";
      assertThat(whole(server, body).path("choices").get(0).path("text").stringValue())
          .isEqualTo("a b c");
      SentEvents events = stream(server, body);
      assertThat(joined(events, 0)).isEqualTo("a b c");
      assertThat(events.choices()).hasSizeGreaterThan(2);
    }
  }

  private static String ids(int[] ids) {
    return java.util.Arrays.toString(ids);
  }

  @Test
  void reportsLogprobsInTheOlderForm() {
    TokenLogprob word = logprob("b", -0.5f, List.of(logprob("b", -0.5f, List.of())));
    TokenLogprob half =
        new TokenLogprob(7, new byte[] {(byte) 0xc3}, Float.NEGATIVE_INFINITY, List.of());
    EndpointServer server =
        serve(
            new GenerationEvent.Output(List.of(new ResponsePart.AnswerText("b")), List.of(word)),
            new GenerationEvent.Output(List.of(), List.of(half)),
            completed(FinishReason.LENGTH));
    JsonNode logprobs =
        whole(server, "{'prompt':'a','logprobs':1}").path("choices").get(0).path("logprobs");
    assertThat(logprobs)
        .isEqualTo(
            Json.read(
                """
                {"tokens":["b","bytes:\\\\xc3"],"token_logprobs":[-0.5,-9999.0],
                 "top_logprobs":[{"b":-0.5},{}],"text_offset":[0,1]}"""));
    SentEvents events = stream(server, "{'prompt':'a','logprobs':1}");
    assertThat(events.choices().get(1).path("logprobs").path("text_offset"))
        .isEqualTo(Json.read("[1]"));
    assertThat(
            whole(server, "{'prompt':'a','logprobs':0}")
                .path("choices")
                .get(0)
                .path("logprobs")
                .path("top_logprobs")
                .isNull())
        .isTrue();
  }

  private static TokenLogprob logprob(String text, float logprob, List<TokenLogprob> top) {
    return new TokenLogprob(1, text.getBytes(StandardCharsets.UTF_8), logprob, top);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "{} | prompt",
        "{'prompt':null} | prompt",
        "{'prompt':''} | prompt",
        "{'prompt':[]} | prompt",
        "{'prompt':['a','']} | prompt[1]",
        "{'prompt':['a',1]} | prompt[1]",
        "{'prompt':[1,'a']} | prompt[1]",
        "{'prompt':[1.5]} | prompt[0]",
        "{'prompt':[[]]} | prompt[0]",
        "{'prompt':{}} | prompt",
        "{'prompt':['a','b','c'],'n':3} | prompt",
        "{'prompt':'a','suffix':'b'} | suffix",
        "{'prompt':'a','best_of':2} | best_of",
        "{'prompt':'a','logprobs':6} | logprobs",
        "{'prompt':'a','logprobs':true} | logprobs",
        "{'prompt':'a','logprobs':1,'echo':true} | echo",
        "{'prompt':'a','max_tokens':0} | max_tokens",
        "{'prompt':'a','top_p':2} | top_p",
        "{'prompt':[-1],'echo':true} | prompt",
      })
  void refusesWhatItCannotHonourNamingTheField(String body, String param) {
    EndpointServer server = serve(completed(FinishReason.STOP));
    JsonNode error = error(post(server, body).expectStatus().isBadRequest());
    assertThat(error.path("param").stringValue()).isEqualTo(param);
    assertThat(server.engine().requests).isEmpty();
  }

  @Test
  void namesThePromptIfTheEngineRefusesIt() {
    for (var failure :
        List.of(
            new ContextOverflowException(600, 512),
            new InvalidRequestException("rawPrompt", "No token has id 9"))) {
      EndpointServer server = serve(ScriptedEngine.refusing(failure));
      JsonNode error = error(post(server, "{'prompt':'a'}").expectStatus().isBadRequest());
      assertThat(error.path("param").stringValue()).isEqualTo("prompt");
    }
  }

  @Test
  void endsAStreamThatFailsWithOneErrorAndNoDone() {
    SentEvents events =
        stream(
            serve(
                answer("x"),
                failed(new EngineFailureException("secret", new IllegalStateException()))),
            "{'prompt':'a'}");
    assertThat(events.done()).isFalse();
    assertThat(events.json().getLast().path("error").path("type").stringValue())
        .isEqualTo("server_error");
  }
}
