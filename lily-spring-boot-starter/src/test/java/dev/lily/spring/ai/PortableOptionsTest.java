package dev.lily.spring.ai;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.spring.ScriptedChatModel;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.ai.chat.prompt.ChatOptions;
import org.springframework.ai.chat.prompt.DefaultChatOptionsBuilder;
import org.springframework.ai.model.tool.StructuredOutputChatOptions;
import org.springframework.ai.model.tool.ToolCallingChatOptions;
import reactor.core.publisher.Flux;

class PortableOptionsTest {
  private static final LilyChatOptions DEFAULTS =
      LilyChatOptions.builder().model("nano").topP(0.9).thinking(false).seed(3L).build();
  private static final ToolCallingChatOptions OTHERS =
      ToolCallingChatOptions.builder().model("big-model").temperature(0.2).maxTokens(100).build();

  private static OverflowOptions to(ChatOptions others) {
    return OverflowOptions.portable(DEFAULTS, ScriptedChatModel.of(others, Flux.empty()));
  }

  private static LilyChatOptions.Builder asked() {
    return LilyChatOptions.builder();
  }

  @Test
  void laysPortableOptionsOverTheOtherModelsOwn() {
    var tool = Tools.tool("get_weather", "The weather", "{}");
    ChatOptions said =
        to(OTHERS)
            .of(
                asked()
                    .model("nano")
                    .temperature(0.7)
                    .topP(0.8)
                    .topK(5)
                    .presencePenalty(0.1)
                    .frequencyPenalty(0.3)
                    .stopSequences(List.of("END"))
                    .toolCallbacks(List.of(tool))
                    .toolContext(Map.of("user", 1))
                    .build());
    assertThat(said)
        .isEqualTo(
            OTHERS
                .mutate()
                .temperature(0.7)
                .topP(0.8)
                .topK(5)
                .presencePenalty(0.1)
                .frequencyPenalty(0.3)
                .stopSequences(List.of("END"))
                .toolCallbacks(List.of(tool))
                .toolContext(Map.of("user", 1))
                .build());
    assertThat(said.getModel()).isEqualTo("big-model");
    assertThat(said.getMaxTokens()).isEqualTo(100);
  }

  @Test
  void takesAlongAModelNameThatIsNotLilys() {
    assertThat(to(OTHERS).of(asked().model("huge").build()).getModel()).isEqualTo("huge");
  }

  static Stream<LilyChatOptions.Builder> lilysOwn() {
    return Stream.of(
        asked().minP(0.1),
        asked().repetitionPenalty(1.1),
        asked().logitBias(Map.of(1, 1.0)),
        asked().seed(4L),
        asked().minTokens(3),
        asked().logprobs(true),
        asked().topLogprobs(2),
        asked().thinking(true),
        asked().preserveThinking(true),
        asked().timeout(Duration.ofSeconds(1)));
  }

  @ParameterizedTest
  @MethodSource("lilysOwn")
  void hasNoWordForWhatOnlyLilyCan(LilyChatOptions.Builder asked) {
    assertThat(to(OTHERS).of(asked.build())).isNull();
  }

  @ParameterizedTest
  @MethodSource("lilysOwn")
  void leavesBehindWhatIsJustTheApplicationsDefault(LilyChatOptions.Builder asked) {
    LilyChatOptions options = asked.build();
    assertThat(
            OverflowOptions.portable(options, ScriptedChatModel.of(OTHERS, Flux.empty()))
                .of(options))
        .isEqualTo(OTHERS);
  }

  /** An option that is forgotten would get lost silently. */
  @Test
  void knowsEveryOption() {
    Set<String> always = Set.of("localOnly", "outputSchema");
    long own =
        Stream.of(LilyChatOptions.class.getDeclaredFields())
            .filter(field -> !Modifier.isStatic(field.getModifiers()) && !field.isSynthetic())
            .map(Field::getName)
            .filter(name -> !always.contains(name))
            .count();
    assertThat(lilysOwn()).hasSize((int) own);
  }

  /** Options of a model that has no top-k, as OpenAI's. */
  private static final class WithoutTopK extends DefaultChatOptionsBuilder<WithoutTopK> {
    @Override
    public WithoutTopK topK(Integer value) {
      return this;
    }

    @Override
    public WithoutTopK combineWith(ChatOptions.Builder<?> other) {
      super.combineWith(other);
      topK = null;
      return this;
    }
  }

  @Test
  void noticesAPortableOptionThatTheOtherModelDrops() {
    ChatOptions others =
        new org.springframework.ai.chat.prompt.DefaultChatOptions(
            "m", null, null, null, null, null, null, null) {
          @Override
          public ChatOptions.Builder<?> mutate() {
            return new WithoutTopK().model("m");
          }
        };
    assertThat(to(others).of(asked().topK(5).build())).isNull();
    assertThat(to(others).of(asked().topP(0.5).build()).getTopP()).isEqualTo(0.5);
  }

  @Test
  void keepsToolsAndSchemasFromModelsWithoutThem() {
    ChatOptions plain = ChatOptions.builder().model("plain").build();
    LilyChatOptions tools = asked().toolCallbacks(List.of(Tools.tool("a", "A tool", "{}"))).build();
    assertThat(to(plain).of(tools)).isNull();
    assertThat(to(plain).of(asked().build()).getModel()).isEqualTo("plain");
    LilyChatOptions schema = asked().outputSchema("{\"type\":\"object\"}").build();
    assertThat(to(plain).of(schema)).isNull();
    assertThat(to(OTHERS).of(schema)).isNull();
  }

  @Test
  void takesASchemaToAModelThatHonoursIt() {
    ChatOptions said =
        to(LilyChatOptions.builder().model("other").build())
            .of(asked().outputSchema("{\"type\":\"object\"}").build());
    assertThat(said)
        .isInstanceOfSatisfying(
            StructuredOutputChatOptions.class,
            structured ->
                assertThat(structured.getOutputSchema()).isEqualTo("{\"type\":\"object\"}"));
  }
}
