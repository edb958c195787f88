package dev.lily.engine.chat;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.InstanceOfAssertFactories.type;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.ObjectNode;

/** Conversations rendered by Jinja2 with the checkpoint's own template. */
class ChatTemplateGoldenTest {
  /** Template errors by case, with the place that the exception must name. */
  private static final Map<String, String> ERROR_PATHS =
      Map.of(
          "error_no_messages", "messages",
          "error_no_user", "messages",
          "error_only_assistant", "messages",
          "error_only_tool_response_user", "messages",
          "error_system_not_first", "messages[1].role",
          "error_two_systems", "messages[1].role",
          "error_content_number", "messages[0].content",
          "error_content_dict", "messages[0].content",
          "error_unknown_part", "messages[0].content[0]",
          "error_image_in_system", "messages[0].content[0]");

  private static final String LEADING_TOOL_RESULT = "tool_result_first_message_no_opener";

  private final ChatTemplate template = new ChatTemplate();

  @ParameterizedTest(name = "{0}")
  @MethodSource("rendered")
  void rendersByteForByte(String name, JsonNode golden) {
    RenderedPrompt prompt = strict(golden);

    assertThat(prompt.text()).isEqualTo(golden.path("expected").stringValue());
    assertThat(prompt.thinking())
        .isEqualTo(
            golden.path("expected").stringValue().endsWith("<|im_start|>assistant\n<think>\n"));
    RangeAssert.assertWellFormed(prompt);
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("renderedWithAnOpenerForEveryTurn")
  void leavesWellFormedConversationsToTheTemplate(String name, JsonNode golden) {
    assertThat(template.render(conversation(golden), options(golden)).text())
        .isEqualTo(golden.path("expected").stringValue());
  }

  @Test
  void refusesALeadingToolResultWhereTheTemplateWritesNoOpener() {
    JsonNode golden = golden(LEADING_TOOL_RESULT);

    assertThatThrownBy(() -> template.render(conversation(golden), options(golden)))
        .asInstanceOf(type(InvalidConversationException.class))
        .satisfies(e -> assertThat(e.path()).isEqualTo("messages[0].role"))
        .satisfies(e -> assertThat(e).hasMessageContaining("tool result"));
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("refused")
  void refusesWithTheTemplatesReason(String name, JsonNode golden) {
    assertThatThrownBy(() -> strict(golden))
        .asInstanceOf(type(InvalidConversationException.class))
        .satisfies(e -> assertThat(e.path()).isEqualTo(ERROR_PATHS.get(name)))
        .satisfies(e -> assertThat(e).hasMessageStartingWith(golden.path("error").stringValue()));
  }

  @Test
  void coversAllGoldens() {
    assertThat(goldens()).hasSize(63);
    assertThat(rendered()).hasSize(51);
    assertThat(refused()).hasSize(10);
  }

  @Test
  void readsDeveloperAsSystemWhereTheTemplateRefusesTheRole() {
    JsonNode golden = golden("error_unknown_role");
    assertThat(golden.path("error").stringValue()).isEqualTo("Unexpected message role.");

    assertThat(template.render(conversation(golden), options(golden)).text())
        .isEqualTo(
            "<|im_start|>system\nx<|im_end|>\n<|im_start|>user\na<|im_end|>\n"
                + "<|im_start|>assistant\n<think>\n");

    ((ObjectNode) golden.path("messages").path(1)).put("role", "robot");
    assertThatThrownBy(() -> strict(golden))
        .asInstanceOf(type(InvalidConversationException.class))
        .satisfies(e -> assertThat(e.path()).isEqualTo("messages[1].role"))
        .satisfies(e -> assertThat(e).hasMessageStartingWith("Unexpected message role. "));
  }

  @Test
  void readsArgumentsInJsonTextWhereTheTemplateRefusesThem() {
    JsonNode golden = golden("tool_call_arguments_json_string_error");
    assertThat(golden.path("error").stringValue())
        .isEqualTo("Can only get item pairs from a mapping.");

    assertThat(strict(golden).text())
        .contains("<function=ping>\n<parameter=a>\n1\n</parameter>\n</function>");

    ((ObjectNode) golden.at("/messages/1/tool_calls/0/function")).put("arguments", "[1]");
    assertThatThrownBy(() -> strict(golden))
        .asInstanceOf(type(InvalidConversationException.class))
        .satisfies(
            e -> assertThat(e.path()).isEqualTo("messages[1].tool_calls[0].function.arguments"))
        .satisfies(
            e -> assertThat(e).hasMessageStartingWith("Can only get item pairs from a mapping. "));
  }

  private RenderedPrompt strict(JsonNode golden) {
    return template.renderStrictly(conversation(golden), options(golden));
  }

  private static Conversation conversation(JsonNode golden) {
    return new Conversation(
        MessageReader.readMessages(golden.path("messages")),
        MessageReader.readTools(golden.path("tools")));
  }

  private static ChatTemplate.Options options(JsonNode golden) {
    JsonNode kwargs = golden.path("kwargs");
    return new ChatTemplate.Options(
        kwargs.path("add_generation_prompt").booleanValue(),
        kwargs.path("enable_thinking").booleanValue(true),
        kwargs.path("preserve_thinking").booleanValue(false),
        kwargs.path("add_vision_id").booleanValue(false));
  }

  private static Stream<Arguments> rendered() {
    return goldens().stream()
        .filter(golden -> golden.has("expected"))
        .map(golden -> Arguments.of(golden.path("name").stringValue(), golden));
  }

  private static Stream<Arguments> renderedWithAnOpenerForEveryTurn() {
    return rendered().filter(arguments -> !arguments.get()[0].equals(LEADING_TOOL_RESULT));
  }

  private static Stream<Arguments> refused() {
    List<String> readAllTheSame =
        List.of("error_unknown_role", "tool_call_arguments_json_string_error");
    return goldens().stream()
        .filter(golden -> golden.has("error"))
        .filter(golden -> !readAllTheSame.contains(golden.path("name").stringValue()))
        .map(golden -> Arguments.of(golden.path("name").stringValue(), golden));
  }

  private static JsonNode golden(String name) {
    return goldens().stream()
        .filter(golden -> golden.path("name").stringValue().equals(name))
        .findFirst()
        .orElseThrow();
  }

  private static List<JsonNode> goldens() {
    try (InputStream in =
        ChatTemplateGoldenTest.class.getResourceAsStream("/goldens/chat_template_goldens.json")) {
      return List.copyOf(((ArrayNode) JsonMapper.shared().readTree(in)).values());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
