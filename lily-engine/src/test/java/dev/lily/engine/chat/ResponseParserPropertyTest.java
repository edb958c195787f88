package dev.lily.engine.chat;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.From;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.Size;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.JsonNodeFactory;
import tools.jackson.databind.node.ObjectNode;

class ResponseParserPropertyTest {
  private static final ToolDefinition TYPED =
      TestTools.tool(
          "typed",
          """
          {'type':'object','properties':{
             's':{'type':'string'},'i':{'type':'integer'},'n':{'type':'number'},
             'b':{'type':'boolean'},'o':{'type':'object'},'a':{'type':'array'}}}""");
  private static final List<ToolDefinition> TOOLS = List.of(TYPED, TestTools.NOW);
  private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

  private static final Arbitrary<String> PIECES =
      Arbitraries.of(
          "<think>",
          "</think>",
          "<tool_call>",
          "</tool_call>",
          "<function=typed>",
          "<function=now>",
          "<function=other>",
          "<function={x}>",
          "</function>",
          "<parameter=s>",
          "<parameter=i>",
          "<parameter=zz>",
          "</parameter>",
          "\n</parameter>\n",
          "\n</parameter>\n</function>\n</tool_call>\n",
          "<tool_call>\n<function=typed>\n<parameter=s>\n",
          "<tool_call>\n<function=now>\n</function>\n</tool_call>",
          "<tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call>",
          "<tool_call>{\"name\":",
          "{",
          "}",
          "\"",
          "<",
          "</",
          "<tool",
          "_call>",
          "<func",
          "tion=",
          "<param",
          "</par",
          "\n",
          "\n\n",
          "\r\n",
          " ",
          "  ",
          "word",
          "42",
          "True",
          "[1, 2]",
          "{'a': 1}",
          "é",
          "😀");

  @Provide
  Arbitrary<String> answers() {
    return PIECES.list().ofMaxSize(40).map(pieces -> String.join("", pieces));
  }

  @Property
  void saysTheSameHoweverTheTextIsCut(
      @ForAll("answers") String text,
      @ForAll @Size(max = 12) List<Integer> cuts,
      @ForAll boolean thinking,
      @ForAll boolean truncated,
      @ForAll boolean withTools) {
    List<ToolDefinition> tools = withTools ? TOOLS : List.of();
    int[] positions =
        cuts.stream().mapToInt(cut -> Math.floorMod(cut, text.length() + 1)).sorted().toArray();

    ParsedResponse whole = ParsedResponse.of(tools, thinking, truncated, List.of(text));

    assertThat(ParsedResponse.of(tools, thinking, truncated, ParsedResponse.cut(text, positions)))
        .isEqualTo(whole);
    assertThat(ParsedResponse.of(tools, thinking, truncated, ParsedResponse.characters(text)))
        .isEqualTo(whole);
  }

  @Property
  void keepsEveryWordThatIsNotPartOfACall(
      @ForAll("answers") String text, @ForAll boolean thinking, @ForAll boolean truncated) {
    ParsedResponse parsed = ParsedResponse.of(TOOLS, thinking, truncated, List.of(text));
    if (!parsed.calls().isEmpty()) {
      return;
    }
    String said = parsed.reasoning() + parsed.answer() + String.join("", parsed.incomplete());

    assertThat(count(said, "word")).isEqualTo(count(text, "word"));
    assertThat(count(said, "42")).isEqualTo(count(text, "42"));
  }

  private static int count(String text, String word) {
    return text.split(word, -1).length - 1;
  }

  @Provide
  Arbitrary<String> values() {
    Arbitrary<String> words =
        Arbitraries.of(
            "a",
            "word",
            " ",
            "  ",
            "\n",
            "\n\n",
            "\t",
            "\r",
            "\"",
            "'",
            "\\",
            "\\n",
            "{",
            "}",
            "é",
            "語",
            "😀",
            "\u0000",
            "<",
            ">",
            "</",
            "<a>",
            "</b>",
            "&lt;",
            "<tool_call> is",
            "use </tool_call> here",
            "x </function> y",
            "z </parameter> z",
            "<parameter=s> q",
            "\n<parameter=i> q",
            "\n<parameter=i>1</parameter>\n",
            "\n</parameter> z",
            "\n</function> y",
            "\n</tool_call> here",
            "\n<tool_call>\n",
            "\n<function=typed>\n",
            "\n</function>\n",
            "null",
            "True",
            "007",
            "<|im_end|>",
            "</think>",
            "<think>");
    return Arbitraries.oneOf(
        words.list().ofMaxSize(20).map(list -> String.join("", list)), Arbitraries.strings());
  }

  @Provide
  Arbitrary<ObjectNode> arguments() {
    Arbitrary<JsonNode> integers = Arbitraries.bigIntegers().map(NODES::numberNode);
    Arbitrary<JsonNode> booleans = Arbitraries.of(true, false).map(NODES::booleanNode);
    Arbitrary<JsonNode> strings = values().map(NODES::stringNode);
    Arbitrary<JsonNode> numbers =
        Arbitraries.doubles().between(-1e6, 1e6).ofScale(4).map(d -> NODES.numberNode(d + 0.00001));
    Arbitrary<JsonNode> scalars = Arbitraries.oneOf(integers, booleans, strings, numbers);
    Arbitrary<JsonNode> objects =
        Arbitraries.maps(Arbitraries.strings().alpha().ofMinLength(1).ofMaxLength(5), scalars)
            .ofMaxSize(4)
            .map(ResponseParserPropertyTest::object);
    Arbitrary<JsonNode> arrays =
        Arbitraries.oneOf(scalars, objects)
            .list()
            .ofMaxSize(4)
            .map(items -> NODES.arrayNode().addAll(items));
    return Combinators.combine(strings, integers, numbers, booleans, objects, arrays)
        .as(
            (s, i, n, b, o, a) -> {
              ObjectNode arguments = NODES.objectNode();
              arguments.set("s", s);
              arguments.set("i", i);
              arguments.set("n", n);
              arguments.set("b", b);
              arguments.set("o", o);
              arguments.set("a", a);
              return arguments;
            });
  }

  private static ObjectNode object(Map<String, JsonNode> entries) {
    ObjectNode object = NODES.objectNode();
    entries.forEach(object::set);
    return object;
  }

  /** As the template writes it. */
  private static String written(ObjectNode arguments) {
    StringBuilder call = new StringBuilder("<tool_call>\n<function=typed>\n");
    arguments.forEachEntry(
        (key, value) ->
            call.append("<parameter=")
                .append(key)
                .append(">\n")
                .append(value.isString() ? value.stringValue() : value.toString())
                .append("\n</parameter>\n"));
    return call.append("</function>\n</tool_call>").toString();
  }

  @Property
  void readsBackWhatTheTemplateWrites(
      @ForAll @Size(min = 1, max = 3) List<@From("arguments") ObjectNode> calls,
      @ForAll boolean thinking) {
    List<String> blocks = new ArrayList<>();
    calls.forEach(arguments -> blocks.add(written(arguments)));
    String text = (thinking ? "Hm\n</think>\n\n" : "") + String.join("\n", blocks);

    ParsedResponse parsed = ParsedResponse.of(TOOLS, thinking, false, List.of(text));

    assertThat(parsed.answer()).isEmpty();
    assertThat(parsed.incomplete()).isEmpty();
    assertThat(parsed.calls())
        .extracting(call -> call.arguments().toString())
        .containsExactlyElementsOf(calls.stream().map(ObjectNode::toString).toList());
  }
}
