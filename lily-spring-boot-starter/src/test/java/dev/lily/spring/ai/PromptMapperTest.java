package dev.lily.spring.ai;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.lily.engine.chat.Message;
import dev.lily.engine.chat.ToolDefinition;
import dev.lily.engine.generation.GenerationRequest;
import dev.lily.engine.generation.InvalidRequestException;
import dev.lily.engine.sampling.SamplingOptions;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.ai.chat.messages.UserMessage;

class PromptMapperTest {

  private final PromptMapper mapper = new PromptMapper("lily-nano");

  private GenerationRequest map(LilyChatOptions.Builder options) {
    return mapper.request(List.of(new UserMessage("Hello")), options.build());
  }

  @Test
  void leavesToTheEngineWhatIsNotSaid() {
    GenerationRequest request = map(LilyChatOptions.builder());
    assertThat(request).isEqualTo(GenerationRequest.of("Hello"));
    assertThat(request.sampling()).isEqualTo(SamplingOptions.NONE);
  }

  @Test
  void passesEveryOptionOn() {
    GenerationRequest request =
        map(
            LilyChatOptions.builder()
                .model("lily-nano")
                .temperature(0.4)
                .topK(9)
                .topP(0.8)
                .minP(0.1)
                .presencePenalty(1.5)
                .frequencyPenalty(-0.5)
                .repetitionPenalty(1.1)
                .logitBias(Map.of(17, -100.0))
                .seed(42L)
                .maxTokens(100)
                .minTokens(2)
                .stopSequences(List.of("END", "STOP"))
                .logprobs(true)
                .topLogprobs(3)
                .thinking(false)
                .preserveThinking(true)
                .timeout(Duration.ofSeconds(9)));
    assertThat(request.sampling())
        .isEqualTo(
            SamplingOptions.builder()
                .temperature(0.4)
                .topK(9)
                .topP(0.8)
                .minP(0.1)
                .presencePenalty(1.5)
                .frequencyPenalty(-0.5)
                .repetitionPenalty(1.1)
                .logitBias(Map.of(17, -100.0))
                .seed(42L)
                .build());
    assertThat(request.maxTokens()).isEqualTo(100);
    assertThat(request.minTokens()).isEqualTo(2);
    assertThat(request.stopStrings()).containsExactly("END", "STOP");
    assertThat(request.topLogprobs()).isEqualTo(3);
    assertThat(request.thinking()).isFalse();
    assertThat(request.preserveThinking()).isTrue();
    assertThat(request.timeout()).isEqualTo(Duration.ofSeconds(9));
  }

  static List<Arguments> refusals() {
    LilyChatOptions.Builder none = LilyChatOptions.builder();
    return List.of(
        Arguments.of(none.clone().maxTokens(0), "maxTokens", "0"),
        Arguments.of(none.clone().maxTokens(-1), "maxTokens", "-1"),
        Arguments.of(none.clone().minTokens(-2), "minTokens", "-2"),
        Arguments.of(none.clone().maxTokens(3).minTokens(4), "minTokens", "4"),
        Arguments.of(none.clone().temperature(-1.0), "temperature", "-1.0"),
        Arguments.of(none.clone().temperature(Double.NaN), "temperature", "NaN"),
        Arguments.of(none.clone().topK(-2), "topK", "-2"),
        Arguments.of(none.clone().topP(1.5), "topP", "1.5"),
        Arguments.of(none.clone().minP(-0.1), "minP", "-0.1"),
        Arguments.of(none.clone().logitBias(Map.of(1, 101.0)), "logitBias", "101.0"),
        Arguments.of(none.clone().stopSequences(List.of("")), "stopStrings", "empty"),
        Arguments.of(none.clone().topLogprobs(21), "topLogprobs", "21"),
        Arguments.of(none.clone().logprobs(false).topLogprobs(2), "topLogprobs", "logprobs"),
        Arguments.of(none.clone().timeout(Duration.ZERO), "timeout", "PT0S"),
        Arguments.of(none.clone().model("gpt-5"), "model", "'gpt-5', but 'lily-nano'"),
        Arguments.of(none.clone().outputSchema("{"), "outputSchema", "no JSON that can be read"));
  }

  @ParameterizedTest
  @MethodSource("refusals")
  void refusesWhatItCannotHonourAndNamesIt(
      LilyChatOptions.Builder options, String parameter, String part) {
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> map(options))
        .withMessageContaining(part)
        .satisfies(e -> assertThat(e.parameter()).isEqualTo(parameter));
  }

  @Test
  void takesTopKZeroAndMinusOneAsOff() {
    assertThat(map(LilyChatOptions.builder().topK(0)).sampling().topK()).isZero();
    assertThat(map(LilyChatOptions.builder().topK(-1)).sampling().topK()).isEqualTo(-1);
  }

  @Test
  void reportsOnlyTheChosenTokensWhenLogprobsAreAskedWithoutANumber() {
    assertThat(map(LilyChatOptions.builder().logprobs(true)).topLogprobs()).isZero();
    assertThat(map(LilyChatOptions.builder().logprobs(false)).topLogprobs()).isNull();
    assertThat(map(LilyChatOptions.builder().topLogprobs(4)).topLogprobs()).isEqualTo(4);
  }

  @Test
  void showsToolsInTheOrderGivenWithTheSchemaAsWritten() {
    GenerationRequest request =
        map(
            LilyChatOptions.builder()
                .toolCallbacks(
                    Tools.tool(
                        "zebra",
                        "Last by name",
                        """
                        {"type": "object", "required": ["b"],
                         "properties": {"b": {"type": "string"}, "a": {"type": "integer"}}}"""),
                    Tools.tool("apple", "First by name", "{\"type\":\"object\"}"),
                    Tools.tool("mango", "No parameters", "{}")));
    List<ToolDefinition> tools = request.conversation().tools();
    assertThat(tools).extracting(ToolDefinition::name).containsExactly("zebra", "apple", "mango");
    assertThat(tools.getFirst().json())
        .hasToString(
            "{\"type\":\"function\",\"function\":{\"name\":\"zebra\",\"description\":\"Last by"
                + " name\",\"parameters\":{\"type\":\"object\",\"required\":[\"b\"],"
                + "\"properties\":{\"b\":{\"type\":\"string\"},\"a\":{\"type\":\"integer\"}}}}}");
  }

  @Test
  void showsAToolOnceThatIsGivenTwice() {
    GenerationRequest request =
        map(
            LilyChatOptions.builder()
                .toolCallbacks(Tools.tool("same", "d", "{}"), Tools.tool("same", "d", "{}")));
    assertThat(request.conversation().tools()).hasSize(1);
  }

  @Test
  void refusesTwoDifferentToolsOfOneName() {
    LilyChatOptions.Builder options =
        LilyChatOptions.builder()
            .toolCallbacks(Tools.tool("same", "d", "{}"), Tools.tool("same", "other", "{}"));
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> map(options))
        .withMessageContaining("'same'");
  }

  @Test
  void refusesASchemaThatIsNoJsonObject() {
    for (String schema : List.of("[]", "{\"type\":", "true", "1 2")) {
      LilyChatOptions.Builder options =
          LilyChatOptions.builder().toolCallbacks(Tools.tool("broken", "d", schema));
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> map(options))
          .satisfies(e -> assertThat(e.parameter()).isEqualTo("tools[0].inputSchema"));
    }
  }

  @Test
  void mapsTheMessages() {
    assertThat(map(LilyChatOptions.builder()).conversation().messages())
        .containsExactly(new Message.User("Hello"));
  }
}
