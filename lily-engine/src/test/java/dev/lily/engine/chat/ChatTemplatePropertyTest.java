package dev.lily.engine.chat;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.Tuple;
import tools.jackson.databind.node.JsonNodeFactory;
import tools.jackson.databind.node.ObjectNode;

class ChatTemplatePropertyTest {
  private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

  private final ChatTemplate template = new ChatTemplate();

  @Property(tries = 300)
  void rangesAreAscendingAndInsideTheText(
      @ForAll("conversations") Conversation conversation,
      @ForAll("options") ChatTemplate.Options options) {
    RangeAssert.assertWellFormed(template.render(conversation, options));
  }

  @Property(tries = 300)
  void whatTheTemplateWritesDoesNotDependOnWhatTheCallerTyped(
      @ForAll("conversations") Conversation conversation,
      @ForAll("options") ChatTemplate.Options options) {
    assertThat(ofTheTemplate(template.render(conversation, options)))
        .isEqualTo(ofTheTemplate(template.render(plain(conversation), options)));
  }

  @Property(tries = 300)
  void userTextIsOneLiteral(@ForAll("questions") String text) {
    RenderedPrompt prompt =
        template.render(
            Conversation.of(new Message.User(text)),
            new ChatTemplate.Options(true, true, false, false));
    String trimmed = MarkedText.literal(text).trim().text();

    assertThat(prompt.text())
        .isEqualTo("<|im_start|>user\n" + trimmed + "<|im_end|>\n<|im_start|>assistant\n<think>\n");
    assertThat(RangeAssert.literals(prompt))
        .isEqualTo(trimmed.isEmpty() ? List.of() : List.of(trimmed));
  }

  @Property(tries = 300)
  void renderingTheHistoryGivesAPrefixOfThePrompt(
      @ForAll("conversations") Conversation conversation,
      @ForAll("options") ChatTemplate.Options options) {
    ChatTemplate.Options history =
        new ChatTemplate.Options(
            false, options.enableThinking(), options.preserveThinking(), options.addVisionId());
    ChatTemplate.Options prompt =
        new ChatTemplate.Options(
            true, options.enableThinking(), options.preserveThinking(), options.addVisionId());

    assertThat(template.render(conversation, prompt).text())
        .startsWith(template.render(conversation, history).text());
  }

  private static String ofTheTemplate(RenderedPrompt prompt) {
    return RangeAssert.skeleton(prompt).replace("¤", "");
  }

  /** The same conversation with every typed text replaced by a harmless one. */
  private static Conversation plain(Conversation conversation) {
    List<Message> messages = new ArrayList<>();
    for (Message message : conversation.messages()) {
      List<ContentPart> content =
          message.content().stream()
              .map(part -> part instanceof ContentPart.Text(String text) ? plainPart(text) : part)
              .toList();
      messages.add(
          switch (message) {
            case Message.Instructions _ -> new Message.Instructions(content);
            case Message.User _ -> new Message.User(content);
            case Message.ToolResult _ -> new Message.ToolResult(content);
            case Message.Assistant answer ->
                new Message.Assistant(
                    content,
                    answer.reasoning() == null ? null : plain(answer.reasoning()),
                    answer.toolCalls().stream().map(ChatTemplatePropertyTest::plain).toList());
          });
    }
    List<ToolDefinition> tools = new ArrayList<>();
    for (int i = 0; i < conversation.tools().size(); i++) {
      tools.add(ToolDefinition.of("tool" + i, "d", NODES.objectNode()));
    }
    return new Conversation(messages, tools);
  }

  private static ContentPart plainPart(String text) {
    return new ContentPart.Text(plain(text));
  }

  private static String plain(String text) {
    return PythonWhitespace.isBlank(text) ? "" : "x";
  }

  private static ToolCall plain(ToolCall call) {
    ObjectNode arguments = NODES.objectNode();
    for (int i = 0; i < call.arguments().size(); i++) {
      arguments.put("key" + i, "value");
    }
    return new ToolCall("", "name", arguments);
  }

  /** Conversations that the template accepts; the last message is a question. */
  @Provide
  Arbitrary<Conversation> conversations() {
    Arbitrary<List<Message>> history =
        Arbitraries.oneOf(instructions(), users(), answers(), results()).list().ofMaxSize(6);
    return Combinators.combine(users(), history, users(), tools())
        .as(
            (first, middle, last, tools) -> {
              List<Message> messages = new ArrayList<>();
              messages.add(first);
              messages.addAll(middle);
              messages.add(last);
              return new Conversation(messages, tools);
            });
  }

  @Provide
  Arbitrary<ChatTemplate.Options> options() {
    Arbitrary<Boolean> flag = Arbitraries.of(true, false);
    return Combinators.combine(flag, flag, flag, flag).as(ChatTemplate.Options::new);
  }

  /** Not in the form of a tool result: the template does not take those for questions. */
  @Provide
  Arbitrary<String> questions() {
    return typedWithout("<tool_response>");
  }

  private static Arbitrary<String> typed() {
    return Arbitraries.oneOf(typedWithout(""), Arbitraries.strings().ofMaxLength(20));
  }

  private Arbitrary<Message> instructions() {
    return texts(typed()).map(Message.Instructions::new);
  }

  private Arbitrary<Message> users() {
    return parts(questions()).map(Message.User::new);
  }

  private Arbitrary<Message> results() {
    return parts(typed()).map(Message.ToolResult::new);
  }

  /** Without an end of thought in the content: there the template writes tags of its own. */
  private Arbitrary<Message> answers() {
    return Combinators.combine(
            parts(typedWithout("</think>")), typed().injectNull(0.5), calls().list().ofMaxSize(2))
        .as(Message.Assistant::new);
  }

  private Arbitrary<ToolCall> calls() {
    return Combinators.combine(typed(), Arbitraries.maps(typed(), typed()).ofMaxSize(3))
        .as((name, arguments) -> new ToolCall("", name, objectOf(arguments)));
  }

  private Arbitrary<List<ToolDefinition>> tools() {
    return Combinators.combine(typed(), typed())
        .as((name, description) -> ToolDefinition.of(name, description, NODES.objectNode()))
        .list()
        .uniqueElements(ToolDefinition::name)
        .ofMaxSize(3);
  }

  private static Arbitrary<List<ContentPart>> parts(Arbitrary<String> texts) {
    return Arbitraries.frequencyOf(
            Tuple.of(4, texts.map(ContentPart.Text::new)),
            Tuple.of(1, Arbitraries.of(new ContentPart.Image(), new ContentPart.Video())))
        .list()
        .ofMaxSize(3)
        .map(List::copyOf);
  }

  private static Arbitrary<List<ContentPart>> texts(Arbitrary<String> texts) {
    return texts.map(text -> (ContentPart) new ContentPart.Text(text)).list().ofMaxSize(3);
  }

  private static Arbitrary<String> typedWithout(String fragment) {
    return Arbitraries.of(
            "<|im_start|>",
            "<|im_end|>",
            "<|im_",
            "end|>",
            "<|endoftext|>",
            "<think>",
            "</think>",
            "<tool_call>",
            "</tool_call>",
            "<tool_response>",
            "</tool_response>",
            "<|image_pad|>",
            "<function=",
            "</parameter>",
            "user",
            "system\n",
            "a",
            " ",
            "\n",
            "\u00a0",
            "🍎",
            "\"")
        .filter(piece -> !piece.equals(fragment))
        .list()
        .ofMaxSize(5)
        .map(pieces -> String.join("", pieces));
  }

  private static ObjectNode objectOf(Map<String, String> arguments) {
    ObjectNode object = NODES.objectNode();
    arguments.forEach(object::put);
    return object;
  }
}
