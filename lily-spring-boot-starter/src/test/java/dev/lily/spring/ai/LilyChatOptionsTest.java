package dev.lily.spring.ai;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.InstanceOfAssertFactories.LIST;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.ai.chat.client.ChatClient;
import org.springframework.ai.chat.messages.AssistantMessage;
import org.springframework.ai.chat.model.ChatModel;
import org.springframework.ai.chat.model.ChatResponse;
import org.springframework.ai.chat.model.Generation;
import org.springframework.ai.chat.prompt.ChatOptions;
import org.springframework.ai.chat.prompt.Prompt;
import org.springframework.ai.model.tool.StructuredOutputChatOptions;
import org.springframework.ai.model.tool.ToolCallingChatOptions;
import org.springframework.ai.test.options.AbstractChatOptionsTests;
import org.springframework.ai.tool.ToolCallback;

class LilyChatOptionsTest
    extends AbstractChatOptionsTests<LilyChatOptions, LilyChatOptions.Builder> {

  @Override
  protected Class<LilyChatOptions> getConcreteOptionsClass() {
    return LilyChatOptions.class;
  }

  @Override
  protected LilyChatOptions.Builder readyToBuildBuilder() {
    return LilyChatOptions.builder().model("m").seed(1L);
  }

  /** Every field of the class and its superclasses. */
  static List<String> fields() {
    List<String> names = new ArrayList<>();
    for (Class<?> type = LilyChatOptions.class; type != Object.class; type = type.getSuperclass()) {
      for (Field field : type.getDeclaredFields()) {
        if (!Modifier.isStatic(field.getModifiers()) && !field.isSynthetic()) {
          names.add(field.getName());
        }
      }
    }
    return names;
  }

  private static Object sample(String field, int variant) throws ReflectiveOperationException {
    return switch (field) {
      case "model", "outputSchema" -> "text" + variant;
      case "stopSequences" -> List.of("stop" + variant);
      case "toolCallbacks" -> List.of(Tools.tool("tool" + variant, "A tool", "{}"));
      case "toolContext" -> Map.of("key", variant);
      case "logitBias" -> Map.of(variant, 1.0);
      case "timeout" -> Duration.ofSeconds(variant);
      default -> {
        Class<?> type = setter(field).getParameterTypes()[0];
        yield type == Double.class
            ? (Object) (variant / 8.0)
            : type == Integer.class
                ? (Object) variant
                : type == Long.class ? (Object) (long) variant : (Object) (variant % 2 == 0);
      }
    };
  }

  private static Method setter(String field) {
    for (Method method : LilyChatOptions.Builder.class.getMethods()) {
      if (method.getName().equals(field)
          && method.getParameterCount() == 1
          && !method.isVarArgs()
          && !method.isBridge()
          && method.getParameterTypes()[0] != ToolCallback[].class) {
        return method;
      }
    }
    throw new AssertionError("The builder has no setter for " + field);
  }

  private static LilyChatOptions.Builder with(String field, Object value)
      throws ReflectiveOperationException {
    LilyChatOptions.Builder builder = LilyChatOptions.builder();
    setter(field).invoke(builder, value);
    return builder;
  }

  private static Object get(LilyChatOptions options, String field)
      throws ReflectiveOperationException {
    String getter = "get" + Character.toUpperCase(field.charAt(0)) + field.substring(1);
    return LilyChatOptions.class.getMethod(getter).invoke(options);
  }

  @Test
  void hasTheFieldsThatTheReflectionTestsWalk() {
    assertThat(fields()).hasSize(22).contains("temperature", "toolContext", "minP", "outputSchema");
  }

  @ParameterizedTest
  @MethodSource("fields")
  void keepsEachFieldFromBuilderToGetter(String field) throws ReflectiveOperationException {
    assertThat(get(with(field, sample(field, 1)).build(), field)).isEqualTo(sample(field, 1));
  }

  @ParameterizedTest
  @MethodSource("fields")
  void keepsEachFieldInMutate(String field) throws ReflectiveOperationException {
    LilyChatOptions options = with(field, sample(field, 1)).build();
    assertThat(options.mutate().build()).isEqualTo(options).isNotSameAs(options);
    assertThat(get(options.mutate().build(), field)).isEqualTo(sample(field, 1));
  }

  @ParameterizedTest
  @MethodSource("fields")
  void tellsEachFieldApartInEqualsAndHashCode(String field) throws ReflectiveOperationException {
    LilyChatOptions one = with(field, sample(field, 1)).build();
    LilyChatOptions other = with(field, sample(field, 2)).build();
    assertThat(one).isNotEqualTo(other).isNotEqualTo(LilyChatOptions.builder().build());
    assertThat(one.hashCode()).isNotEqualTo(other.hashCode());
    assertThat(with(field, sample(field, 1)).build()).isEqualTo(one).hasSameHashCodeAs(one);
  }

  @ParameterizedTest
  @MethodSource("fields")
  void takesEachSaidFieldInCombineWithAndKeepsUnsaidOnes(String field)
      throws ReflectiveOperationException {
    LilyChatOptions.Builder said = with(field, sample(field, 1));
    assertThat(LilyChatOptions.builder().combineWith(said).build()).isEqualTo(said.build());
    assertThat(said.combineWith(LilyChatOptions.builder()).build())
        .isEqualTo(with(field, sample(field, 1)).build());
  }

  @ParameterizedTest
  @MethodSource("fields")
  void clonesTheBuilderWithoutSharing(String field) throws ReflectiveOperationException {
    LilyChatOptions.Builder original = with(field, sample(field, 1));
    LilyChatOptions.Builder clone = original.clone();
    setter(field).invoke(clone, sample(field, 2));
    assertThat(original.build()).isEqualTo(with(field, sample(field, 1)).build());
    assertThat(get(clone.build(), field)).isNotEqualTo(sample(field, 1));
  }

  @ParameterizedTest
  @MethodSource("fields")
  void takesNullForNotSaid(String field) throws ReflectiveOperationException {
    LilyChatOptions.Builder builder = with(field, sample(field, 1));
    setter(field).invoke(builder, (Object) null);
    assertThat(builder.build()).isEqualTo(LilyChatOptions.builder().build());
  }

  @Test
  void letsTheLaterOneWinInCombineWith() {
    LilyChatOptions combined =
        LilyChatOptions.builder()
            .temperature(0.1)
            .minP(0.1)
            .seed(1L)
            .combineWith(LilyChatOptions.builder().temperature(0.9).minP(0.9))
            .build();
    assertThat(combined.getTemperature()).isEqualTo(0.9);
    assertThat(combined.getMinP()).isEqualTo(0.9);
    assertThat(combined.getSeed()).isEqualTo(1L);
  }

  private static final LilyChatOptions DEFAULTS =
      LilyChatOptions.builder().model("nano").temperature(0.5).minP(0.2).thinking(false).build();

  @Test
  void meansTheDefaultsWhereAPromptHasNoOptions() {
    assertThat(LilyChatOptions.resolve(null, DEFAULTS)).isSameAs(DEFAULTS);
  }

  @Test
  void takesItsOwnKindAlone() {
    LilyChatOptions own = LilyChatOptions.builder().topK(3).build();
    assertThat(LilyChatOptions.resolve(own, DEFAULTS)).isSameAs(own);
  }

  @Test
  void laysPortableOptionsOverTheDefaults() {
    LilyChatOptions resolved =
        LilyChatOptions.resolve(
            ChatOptions.builder().temperature(0.9).maxTokens(7).build(), DEFAULTS);
    assertThat(resolved).isEqualTo(DEFAULTS.mutate().temperature(0.9).maxTokens(7).build());
  }

  @Test
  void carriesToolsOfForeignOptions() {
    ToolCallback tool = Tools.tool("get_weather", "Weather", "{}");
    LilyChatOptions resolved =
        LilyChatOptions.resolve(
            ToolCallingChatOptions.builder()
                .toolCallbacks(tool)
                .toolContext(Map.of("user", "u1"))
                .build(),
            DEFAULTS);
    assertThat(resolved.getToolCallbacks()).containsExactly(tool);
    assertThat(resolved.getToolContext()).isEqualTo(Map.of("user", "u1"));
    assertThat(resolved.getMinP()).isEqualTo(0.2);
  }

  @Test
  void carriesTheSchemaOfForeignOptions() {
    ChatOptions foreign = StructuredOutputChatOptions.builder().outputSchema("{}").build();
    assertThat(LilyChatOptions.resolve(foreign, DEFAULTS).getOutputSchema()).isEqualTo("{}");
  }

  /** What a model with these defaults is asked by a ChatClient whose request says that. */
  private static LilyChatOptions asked(LilyChatOptions defaults, LilyChatOptions.Builder said) {
    AtomicReference<ChatOptions> asked = new AtomicReference<>();
    ChatModel model =
        new ChatModel() {
          @Override
          public ChatResponse call(Prompt prompt) {
            asked.set(prompt.getOptions());
            return new ChatResponse(List.of(new Generation(new AssistantMessage("done"))));
          }

          @Override
          public ChatOptions getOptions() {
            return defaults;
          }
        };
    ChatClient.create(model).prompt("x").options(said).call().content();
    return (LilyChatOptions) asked.get();
  }

  @ParameterizedTest
  @MethodSource("fields")
  void keepsADefaultThatARequestOfAChatClientLeavesUnsaid(String field)
      throws ReflectiveOperationException {
    LilyChatOptions defaults = with(field, sample(field, 1)).build();
    assertThat(asked(defaults, LilyChatOptions.builder())).isEqualTo(defaults);
  }

  @ParameterizedTest
  @MethodSource("fields")
  void takesWhatARequestOfAChatClientSaysOverTheDefault(String field)
      throws ReflectiveOperationException {
    LilyChatOptions defaults = with(field, sample(field, 2)).build();
    LilyChatOptions asked = asked(defaults, with(field, sample(field, 1)));
    if (sample(field, 1) instanceof List<?> list) { // Spring AI adds lists up.
      assertThat(get(asked, field))
          .asInstanceOf(LIST)
          .hasSize(2)
          .startsWith(((List<?>) sample(field, 2)).toArray())
          .endsWith(list.toArray());
    } else {
      assertThat(get(asked, field)).isEqualTo(sample(field, 1));
    }
  }

  static List<String> portableFields() {
    return fields().stream()
        .filter(
            field ->
                Stream.of(ToolCallingChatOptions.Builder.class.getMethods())
                    .anyMatch(method -> method.getName().equals(field)))
        .toList();
  }

  @ParameterizedTest
  @MethodSource("portableFields")
  void takesEachPortableFieldOfForeignOptionsOverTheDefaults(String field)
      throws ReflectiveOperationException {
    ToolCallingChatOptions.Builder<?> foreign = ToolCallingChatOptions.builder();
    for (Method setter : ToolCallingChatOptions.Builder.class.getMethods()) {
      if (setter.getName().equals(field)
          && setter.getParameterCount() == 1
          && setter.getParameterTypes()[0].isInstance(sample(field, 1))) {
        setter.invoke(foreign, sample(field, 1));
      }
    }
    LilyChatOptions.Builder expected = DEFAULTS.mutate();
    setter(field).invoke(expected, sample(field, 1));
    assertThat(LilyChatOptions.resolve(foreign.build(), DEFAULTS)).isEqualTo(expected.build());
  }

  @Test
  void hasTenPortableFields() {
    assertThat(portableFields()).hasSize(10);
  }
}
