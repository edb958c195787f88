package dev.lily.spring.ai;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.lily.engine.chat.ContentPart;
import dev.lily.engine.chat.Message;
import dev.lily.engine.generation.InvalidRequestException;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.springframework.ai.chat.messages.AssistantMessage;
import org.springframework.ai.chat.messages.SystemMessage;
import org.springframework.ai.chat.messages.ToolResponseMessage;
import org.springframework.ai.chat.messages.ToolResponseMessage.ToolResponse;
import org.springframework.ai.chat.messages.UserMessage;
import org.springframework.ai.content.Media;
import org.springframework.core.io.ByteArrayResource;
import org.springframework.util.MimeTypeUtils;
import tools.jackson.databind.json.JsonMapper;

class MessageMapperTest {

  private static AssistantMessage calling(AssistantMessage.ToolCall... calls) {
    return AssistantMessage.builder().content("").toolCalls(List.of(calls)).build();
  }

  private static AssistantMessage.ToolCall call(String id, String name, String arguments) {
    return new AssistantMessage.ToolCall(id, "function", name, arguments);
  }

  private static ToolResponseMessage responses(ToolResponse... responses) {
    return ToolResponseMessage.builder().responses(List.of(responses)).build();
  }

  @Test
  void keepsSeveralAndLateSystemMessagesInPlace() {
    assertThat(
            MessageMapper.map(
                List.of(
                    new SystemMessage("S1"),
                    new SystemMessage("S2"),
                    new UserMessage("u"),
                    new AssistantMessage("a"),
                    new SystemMessage("S3"))))
        .containsExactly(
            new Message.Instructions("S1"),
            new Message.Instructions("S2"),
            new Message.User("u"),
            new Message.Assistant("a"),
            new Message.Instructions("S3"));
  }

  @Test
  void takesReasoningFromTheMetadata() {
    AssistantMessage thoughtful =
        AssistantMessage.builder()
            .content("4")
            .properties(Map.of("reasoningContent", "2 and 2 make 4."))
            .build();
    assertThat(MessageMapper.map(List.of(thoughtful)))
        .containsExactly(
            new Message.Assistant(
                List.of(new ContentPart.Text("4")), "2 and 2 make 4.", List.of()));
  }

  @Test
  void keepsToolCallArgumentsInTheirOrder() {
    List<Message> mapped =
        MessageMapper.map(
            List.of(
                calling(call("c1", "book", "{\"z\":1,\"a\":[true,null]}"), call("c2", "now", ""))));
    assertThat(mapped)
        .singleElement()
        .isInstanceOfSatisfying(
            Message.Assistant.class,
            assistant -> {
              assertThat(assistant.toolCalls()).hasSize(2);
              assertThat(assistant.toolCalls().get(0).name()).isEqualTo("book");
              assertThat(assistant.toolCalls().get(0).arguments())
                  .hasToString("{\"z\":1,\"a\":[true,null]}");
              assertThat(assistant.toolCalls().get(1).arguments())
                  .isEqualTo(JsonMapper.shared().createObjectNode());
            });
  }

  @Test
  void putsToolResponsesInTheOrderOfTheirCalls() {
    assertThat(
            MessageMapper.map(
                List.of(
                    calling(call("c1", "weather", "{}"), call("c2", "time", "{}")),
                    responses(new ToolResponse("c2", "time", "noon")),
                    responses(new ToolResponse("c1", "weather", "sunny")))))
        .endsWith(new Message.ToolResult("sunny"), new Message.ToolResult("noon"));
  }

  @Test
  void keepsToolResponsesInTheOrderGivenWhenIdsDoNotTell() {
    for (String id : List.of("", "unknown", "c1")) {
      assertThat(
              MessageMapper.map(
                  List.of(
                      calling(call("c1", "weather", "{}"), call("c2", "time", "{}")),
                      responses(
                          new ToolResponse(id, "time", "noon"),
                          new ToolResponse("c1", "weather", "sunny")))))
          .endsWith(new Message.ToolResult("noon"), new Message.ToolResult("sunny"));
    }
  }

  @Test
  void refusesMediaWithPathAndType() {
    UserMessage withImage =
        UserMessage.builder()
            .text("What is this?")
            .media(new Media(MimeTypeUtils.IMAGE_PNG, new ByteArrayResource(new byte[] {1})))
            .build();
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> MessageMapper.map(List.of(new SystemMessage("s"), withImage)))
        .withMessage(
            "messages[1] has 1 media of type image/png; Lily reads text only. Describe them in"
                + " text.")
        .satisfies(e -> assertThat(e.parameter()).isEqualTo("messages[1].media"));
  }

  @Test
  void refusesArgumentsThatAreNoJsonObject() {
    for (String arguments : List.of("{\"city\":", "[1]", "\"text\"", "{} trailing")) {
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> MessageMapper.map(List.of(calling(call("c1", "f", arguments)))))
          .satisfies(
              e -> assertThat(e.parameter()).isEqualTo("messages[0].toolCalls[0].arguments"));
    }
  }

  @Test
  void refusesDeeplyNestedArgumentsInsteadOfOverflowing() {
    String deep = "{\"a\":".repeat(100_000) + "1" + "}".repeat(100_000);
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> MessageMapper.map(List.of(calling(call("c1", "f", deep)))));
  }

  @Test
  void readsNoTextAsEmptyText() {
    assertThat(MessageMapper.map(List.of(AssistantMessage.builder().build())))
        .containsExactly(new Message.Assistant(""));
  }
}
