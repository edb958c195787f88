package dev.lily.spring.openai;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import tools.jackson.databind.JsonNode;

class TokensEndpointTest extends EndpointTest {

  private JsonNode post(String path, String body) {
    return Json.read(
        EndpointServer.text(serve().postTo(path, body.replace('\'', '"')).expectStatus().isOk()));
  }

  @Test
  void turnsTextIntoTokensAndBack() {
    String text = "Grüße, <|im_end|> 47 + 38";
    JsonNode tokens = post("/v1/tokenize", "{'prompt':'" + text + "'}");
    int[] ids = EndpointServer.TOKENIZER.encode(text, new int[] {0, text.length()});
    assertThat(tokens.path("tokens")).isEqualTo(Json.read(Arrays.toString(ids)));
    assertThat(tokens.path("count").intValue()).isEqualTo(ids.length);
    assertThat(tokens.path("max_model_len").intValue()).isEqualTo(EndpointServer.CONTEXT_LENGTH);
    assertThat(post("/v1/detokenize", "{'tokens':" + Arrays.toString(ids) + "}"))
        .isEqualTo(Json.object("{'prompt':'" + text + "'}"));
    assertThat(post("/v1/tokenize", "{'prompt':''}").path("count").intValue()).isZero();
  }

  @Test
  void namesTheFieldsThatHadNoEffect() {
    assertThat(
            serve()
                .postTo("/v1/tokenize", "{\"prompt\":\"a\",\"add_special_tokens\":true}")
                .expectStatus()
                .isOk()
                .expectBody()
                .returnResult()
                .getResponseHeaders()
                .getFirst("x-ignored-fields"))
        .isEqualTo("add_special_tokens");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "tokenize | {} | prompt",
        "tokenize | {'prompt':['a']} | prompt",
        "tokenize | {'prompt':'a','model':'other'} | model",
        "detokenize | {} | tokens",
        "detokenize | {'tokens':[]} | tokens",
        "detokenize | {'tokens':'a'} | tokens",
        "detokenize | {'tokens':[1,1.5]} | tokens[1]",
        "detokenize | {'tokens':[-1]} | tokens",
        "detokenize | {'tokens':[1000000]} | tokens",
      })
  void refusesWhatItCannotRead(String path, String body, String param) {
    JsonNode error =
        error(
            serve()
                .postTo("/v1/" + path, body.replace('\'', '"'))
                .expectStatus()
                .is4xxClientError());
    assertThat(error.path("param").stringValue()).isEqualTo(param);
  }

  @Test
  void refusesMoreTokensThanTheContextHolds() {
    int[] ids = new int[EndpointServer.CONTEXT_LENGTH + 1];
    String body = "{'tokens':" + Arrays.toString(ids) + "}";
    assertThat(
            error(
                    serve()
                        .postTo("/v1/detokenize", body.replace('\'', '"'))
                        .expectStatus()
                        .isBadRequest())
                .path("param")
                .stringValue())
        .isEqualTo("tokens");
  }
}
