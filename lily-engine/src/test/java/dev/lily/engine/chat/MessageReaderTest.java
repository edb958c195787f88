package dev.lily.engine.chat;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.InstanceOfAssertFactories.type;

import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.JsonNodeFactory;
import tools.jackson.databind.node.ObjectNode;

class MessageReaderTest {
  private static final ChatTemplate.Options HISTORY =
      new ChatTemplate.Options(false, true, false, false);

  @Test
  void readsEveryRole() {
    assertThat(
            read(
                """
                [{"role":"system","content":"s"},
                 {"role":"developer","content":"d"},
                 {"role":"user","content":"u","name":"Ada"},
                 {"role":"assistant","content":"a","reasoning_content":"r","refusal":null},
                 {"role":"tool","tool_call_id":"c1","content":"t"}]"""))
        .containsExactly(
            new Message.Instructions("s"),
            new Message.Instructions("d"),
            new Message.User("u"),
            new Message.Assistant(List.of(new ContentPart.Text("a")), "r", List.of()),
            new Message.ToolResult("t"));
  }

  @ParameterizedTest
  @CsvSource({
    "c1 c2 c3, c3 c1 c2, c1 c2 c3",
    "c1 c2 c3, c3 c1, c1 c3",
    "c1 c2 c3, c2 x c1, c2 x c1",
    "c1 c2 c3, c2 c2 c1, c2 c2 c1",
    "c1 c1 c3, c3 c1, c3 c1",
  })
  void putsResultsInTheOrderOfTheirCallsIfTheIdsSayIt(String calls, String sent, String read) {
    ArrayNode messages = JsonNodeFactory.instance.arrayNode();
    ArrayNode called =
        messages.addObject().put("role", "assistant").put("content", "").putArray("tool_calls");
    for (String id : calls.split(" ")) {
      called.addObject().put("id", id).putObject("function").put("name", "f");
    }
    for (String id : sent.split(" ")) {
      messages.addObject().put("role", "tool").put("tool_call_id", id).put("content", id);
    }
    messages.addObject().put("role", "user").put("content", "u");
    assertThat(MessageReader.readMessages(messages).stream().skip(1))
        .containsExactlyElementsOf(
            Stream.concat(
                    Stream.of(read.split(" ")).map(Message.ToolResult::new),
                    Stream.of(new Message.User("u")))
                .toList());
  }

  @Test
  void rendersTwoDeveloperMessagesAsOneSystemBlock() {
    assertThat(
            render(
                """
                [{"role":"developer","content":"D1"},
                 {"role":"developer","content":"D2"},
                 {"role":"user","content":"hi"}]"""))
        .isEqualTo("<|im_start|>system\nD1\n\nD2<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          [{"role":"robot","content":"x"}]                      | messages[0].role | "robot"
          [{"role":"user","content":"u"},{"content":"x"}]       | messages[1].role | missing
          [{"role":null,"content":"x"}]                         | messages[0].role | null
          [{"role":7,"content":"x"}]                            | messages[0].role | a number
          [{"role":"User","content":"x"}]                       | messages[0].role | "User"
          [{"role":"","content":"x"}]                           | messages[0].role | ""
          [{"role":"function","name":"f","content":"x"}]        | messages[0].role | "function"
          """)
  void refusesUnknownRoles(String json, String path, String found) {
    assertRefused(json, path, "Unexpected message role. " + path + " is " + found + ";");
  }

  @Test
  void quotesOnlyTheStartOfALongValue() {
    assertThatThrownBy(
            () -> read("[{\"role\":\"%s\",\"content\":\"x\"}]".formatted("r".repeat(100_000))))
        .isInstanceOf(InvalidConversationException.class)
        .hasMessageContaining("\"" + "r".repeat(40) + "…\"");
  }

  @ParameterizedTest
  @ValueSource(strings = {"[]", "null"})
  void refusesNoMessages(String json) {
    assertRefused(json, "messages", "No messages provided.");
  }

  @Test
  void refusesAbsentMessages() {
    for (JsonNode absent : new JsonNode[] {null, JsonNodeFactory.instance.missingNode()}) {
      assertThatThrownBy(() -> MessageReader.readMessages(absent))
          .asInstanceOf(type(InvalidConversationException.class))
          .satisfies(e -> assertThat(e.path()).isEqualTo("messages"));
    }
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          "hi"               | messages    | messages is "hi"; it must be an array of messages.
          {"role":"user"}    | messages    | messages is an object; it must be an array of messages.
          ["hi"]             | messages[0] | messages[0] is "hi"; it must be a message object.
          [[]]               | messages[0] | messages[0] is an array; it must be a message object.
          [null]             | messages[0] | messages[0] is null; it must be a message object.
          """)
  void refusesMessagesOfAnotherForm(String json, String path, String message) {
    assertRefused(json, path, message);
  }

  @ParameterizedTest
  @ValueSource(strings = {"user", "system", "developer", "tool"})
  void refusesAMessageThatLacksContent(String role) {
    assertRefused(
        "[{\"role\":\"%s\"}]".formatted(role),
        "messages[0].content",
        "messages[0].content is missing.");
  }

  @Test
  void readsAnAnswerThatLacksContentAsEmpty() {
    assertThat(read("[{\"role\":\"assistant\"}]"))
        .containsExactly(new Message.Assistant(List.of(), null, List.of()));
  }

  @ParameterizedTest
  @ValueSource(strings = {"user", "system", "tool", "assistant"})
  void readsNullContentAsEmpty(String role) {
    assertThat(read("[{\"role\":\"%s\",\"content\":null}]".formatted(role)))
        .singleElement()
        .extracting(Message::content)
        .isEqualTo(List.of());
  }

  @Test
  void readsNullContentBesideToolCalls() {
    assertThat(
            render(
                """
                [{"role":"user","content":"go"},
                 {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function",
                  "function":{"name":"get_secret","arguments":"{}"}}]},
                 {"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"42"}]}]"""))
        .isEqualTo(
            """
            <|im_start|>user
            go<|im_end|>
            <|im_start|>assistant
            <think>

            </think>

            <tool_call>
            <function=get_secret>
            </function>
            </tool_call><|im_end|>
            <|im_start|>user
            <tool_response>
            42
            </tool_response><|im_end|>
            """);
  }

  @Test
  void readsPartsByTheTemplatesKeys() {
    assertThat(
            read(
                """
                [{"role":"user","content":[
                  {"type":"text","text":"A"}, {"text":"B"}, {"type":"input_text","text":"C"},
                  {"type":"image"}, {"image":"x"}, {"type":"image_url"},
                  {"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},
                  {"type":"text","text":"D","image":"x"},
                  {"type":"video"}, {"video":"x","text":"E"}]}]"""))
        .containsExactly(
            new Message.User(
                List.of(
                    new ContentPart.Text("A"),
                    new ContentPart.Text("B"),
                    new ContentPart.Text("C"),
                    new ContentPart.Image(),
                    new ContentPart.Image(),
                    new ContentPart.Image(),
                    new ContentPart.Image(),
                    new ContentPart.Image(),
                    new ContentPart.Video(),
                    new ContentPart.Video())));
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          {"type":"blob"}              | a part of type "blob"
          {"type":"text"}              | a part of type "text"
          {"type":"refusal","refusal":"no"} | a part of type "refusal"
          {}                           | a part of type ""
          "text"                       | "text"
          null                         | null
          [{"type":"text"}]            | an array
          """)
  void refusesUnknownParts(String part, String found) {
    assertRefused(
        "[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"A\"},%s]}]".formatted(part),
        "messages[0].content[1]",
        "Unexpected item type in content. messages[0].content[1] is " + found + ";");
  }

  @ParameterizedTest
  @ValueSource(strings = {"5", "true", "{\"type\":\"text\",\"text\":\"x\"}"})
  void refusesContentOfAnotherType(String content) {
    assertRefused(
        "[{\"role\":\"user\",\"content\":%s}]".formatted(content),
        "messages[0].content",
        "Unexpected content type.");
  }

  @ParameterizedTest
  @ValueSource(strings = {"null", "5", "[\"x\"]"})
  void refusesATextThatIsNoString(String text) {
    assertRefused(
        "[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":%s}]}]".formatted(text),
        "messages[0].content[0].text",
        "it must be a string.");
  }

  @Test
  void refusesReasoningThatIsNoString() {
    assertRefused(
        "[{\"role\":\"assistant\",\"content\":\"a\",\"reasoning_content\":{}}]",
        "messages[0].reasoning_content",
        "it must be a string or null.");
  }

  @Test
  void readsArgumentsInJsonTextLikeAnObject() {
    String object =
        "{\"city\":\"Paris\",\"days\":3,\"opts\":{\"u\":[1,2]},\"flag\":true,\"note\":null}";
    String text = JsonMapper.shared().writeValueAsString(object);

    assertThat(arguments(text)).isEqualTo(arguments(object));
    assertThat(arguments(text).propertyNames())
        .containsExactly("city", "days", "opts", "flag", "note");
    assertThat(render(withArguments(text)))
        .isEqualTo(render(withArguments(object)))
        .contains("<parameter=opts>\n{\"u\": [1, 2]}\n</parameter>\n<parameter=flag>\ntrue\n");
  }

  @Test
  void keepsNumbersInJsonTextAsPythonWould() {
    assertThat(
            render(
                withArguments(
                    """
                    "{\\"a\\":1e20,\\"b\\":10.0,\\"c\\":12345678901234567890123,\\"d\\":0.1}\"""")))
        .contains("a>\n1e+20\n")
        .contains("b>\n10.0\n")
        .contains("c>\n12345678901234567890123\n")
        .contains("d>\n0.1\n");
  }

  @ParameterizedTest
  @ValueSource(strings = {"\"\"", "\" \\n\"", "null", "{}", "\"{}\""})
  void readsEmptyArgumentsAsNone(String arguments) {
    assertThat(arguments(arguments)).isEmpty();
    assertThat(render(withArguments(arguments)))
        .contains("<tool_call>\n<function=f>\n</function>\n</tool_call>");
  }

  @Test
  void readsACallWithoutArgumentsOrIdAndABareFunction() {
    assertThat(
            read(
                """
                [{"role":"assistant","tool_calls":[
                  {"function":{"name":"f"}},
                  {"id":"c2","name":"g","arguments":{"a":1}}]}]"""))
        .containsExactly(
            new Message.Assistant(
                List.of(),
                null,
                List.of(
                    new ToolCall("", "f", object("{}")),
                    new ToolCall("c2", "g", object("{\"a\":1}")))));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"{\\\"city\\\":", "{\\\"a\\\":1} x", "nope", "{'a':1}", "{\\\"a\\\":NaN}", "{,}"})
  void refusesBrokenJsonInArguments(String text) {
    assertRefused(
        withArguments("\"" + text + "\""),
        "messages[1].tool_calls[0].function.arguments",
        "messages[1].tool_calls[0].function.arguments is not valid JSON at line 1, column ");
  }

  @Test
  void saysWhereArgumentsStopBeingJson() {
    assertRefused(
        withArguments("\"{\\\"a\\\":\\n nope}\""),
        "messages[1].tool_calls[0].function.arguments",
        "is not valid JSON at line 2, column ");
  }

  @Test
  void refusesArgumentsInJsonTextNestedTooDeep() {
    assertRefused(
        withArguments("\"{\\\"a\\\":" + "[".repeat(50_000) + "\""),
        "messages[1].tool_calls[0].function.arguments",
        "is nested too deep or holds too long a number or key.");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          "[]"       | the JSON text of an array
          "\\"x\\""  | the JSON text of "x"
          "null"     | the JSON text of null
          "3"        | the JSON text of a number
          []         | an array
          3          | a number
          true       | a boolean
          """)
  void refusesArgumentsThatAreNoObject(String arguments, String found) {
    assertRefused(
        withArguments(arguments),
        "messages[1].tool_calls[0].function.arguments",
        "Can only get item pairs from a mapping. messages[1].tool_calls[0].function.arguments is "
            + found
            + ";");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          "f"                                  | messages[0].tool_calls
          {"name":"f"}                         | messages[0].tool_calls
          ["f"]                                | messages[0].tool_calls[0]
          [{"function":"f"}]                   | messages[0].tool_calls[0].function
          [{"function":null}]                  | messages[0].tool_calls[0].function
          [{"function":{"arguments":{}}}]      | messages[0].tool_calls[0].function.name
          [{"function":{"name":5}}]            | messages[0].tool_calls[0].function.name
          [{"name":"f"},{"id":"c1"}]           | messages[0].tool_calls[1].name
          [{"id":1,"function":{"name":"f"}}]   | messages[0].tool_calls[0].id
          [{"name":"f","arguments":[]}]        | messages[0].tool_calls[0].arguments
          """)
  void refusesCallsOfAnotherForm(String calls, String path) {
    assertRefused("[{\"role\":\"assistant\",\"tool_calls\":%s}]".formatted(calls), path, path);
  }

  @Test
  void readsNoToolCalls() {
    Message plain = new Message.Assistant("a");

    assertThat(
            read(
                """
                [{"role":"assistant","content":"a","tool_calls":null},
                 {"role":"assistant","content":"a","tool_calls":[]}]"""))
        .containsExactly(plain, plain);
  }

  @Test
  void readsToolsAsTheyAre() {
    String tools =
        """
        [{"function":{"name":"b","parameters":{"type":"object"},"strict":true},"type":"function"},
         {"type":"function","function":{"name":"now"}},
         {"function":{"name":"a","parameters":null}}]""";

    assertThat(MessageReader.readTools(JsonMapper.shared().readTree(tools)))
        .extracting(ToolDefinition::name)
        .containsExactly("b", "now", "a");
    assertThat(MessageReader.readTools(JsonMapper.shared().readTree(tools)).getFirst().json())
        .hasToString(
            "{\"function\":{\"name\":\"b\",\"parameters\":{\"type\":\"object\"},\"strict\":true},"
                + "\"type\":\"function\"}");
  }

  @Test
  void readsNoTools() {
    assertThat(MessageReader.readTools(null)).isEmpty();
    assertThat(MessageReader.readTools(JsonNodeFactory.instance.missingNode())).isEmpty();
    assertThat(MessageReader.readTools(JsonMapper.shared().readTree("null"))).isEmpty();
    assertThat(MessageReader.readTools(JsonMapper.shared().readTree("[]"))).isEmpty();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          {"name":"f"}                                                | tools
          ["f"]                                                       | tools[0]
          [{"name":"f"}]                                              | tools[0].function
          [{"type":"function","function":[]}]                         | tools[0].function
          [{"type":"function","function":{}}]                         | tools[0].function.name
          [{"type":"web_search","function":{"name":"f"}}]             | tools[0].type
          [{"type":"function","function":{"name":"f","parameters":[]}}] | tools[0].function.parameters
          """)
  void refusesToolsOfAnotherForm(String tools, String path) {
    JsonNode json = JsonMapper.shared().readTree(tools);

    assertThatThrownBy(() -> MessageReader.readTools(json))
        .asInstanceOf(type(InvalidConversationException.class))
        .satisfies(e -> assertThat(e.path()).isEqualTo(path))
        .satisfies(e -> assertThat(e).hasMessageStartingWith(path + " is "));
  }

  @Test
  void refusesTwoToolsOfAName() {
    JsonNode tools =
        JsonMapper.shared()
            .readTree(
                """
                [{"function":{"name":"a"}},{"function":{"name":"b"}},{"function":{"name":"a"}}]""");
    List<Message> messages = List.of(new Message.User("u"));

    assertThatThrownBy(() -> new Conversation(messages, MessageReader.readTools(tools)))
        .asInstanceOf(type(InvalidConversationException.class))
        .satisfies(e -> assertThat(e.path()).isEqualTo("tools[2].function.name"))
        .satisfies(e -> assertThat(e).hasMessageContaining("\"a\""));
  }

  private static void assertRefused(String json, String path, String message) {
    assertThatThrownBy(() -> read(json))
        .asInstanceOf(type(InvalidConversationException.class))
        .satisfies(e -> assertThat(e.path()).isEqualTo(path))
        .satisfies(e -> assertThat(e).hasMessageContaining(message));
  }

  private static List<Message> read(String json) {
    return MessageReader.readMessages(JsonMapper.shared().readTree(json));
  }

  private static String render(String json) {
    return new ChatTemplate().render(new Conversation(read(json), List.of()), HISTORY).text();
  }

  private static String withArguments(String arguments) {
    return """
    [{"role":"user","content":"go"},
     {"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function",
      "function":{"name":"f","arguments":%s}}]},
     {"role":"tool","tool_call_id":"c1","content":"ok"}]"""
        .formatted(arguments);
  }

  private static ObjectNode arguments(String arguments) {
    Message.Assistant answer = (Message.Assistant) read(withArguments(arguments)).get(1);
    return answer.toolCalls().getFirst().arguments();
  }

  private static ObjectNode object(String json) {
    return (ObjectNode) JsonMapper.shared().readTree(json);
  }
}
