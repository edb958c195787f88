package dev.lily.engine.chat;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.node.JsonNodeFactory;
import tools.jackson.databind.node.ObjectNode;

class ToolCallParserTest {

  private static ParsedResponse parse(String text) {
    ParsedResponse whole = ParsedResponse.of(TestTools.ALL, false, false, List.of(text));
    assertThat(ParsedResponse.of(TestTools.ALL, false, false, ParsedResponse.characters(text)))
        .isEqualTo(whole);
    return whole;
  }

  private static ParsedResponse.Call onlyCall(String text) {
    ParsedResponse parsed = parse(text);
    assertThat(parsed.calls()).as("calls of %s", parsed).hasSize(1);
    return parsed.calls().getFirst();
  }

  private static ObjectNode file(String path, String content) {
    return JsonNodeFactory.instance.objectNode().put("path", path).put("content", content);
  }

  /** A call in the form that the template writes. */
  private static String written(String path, String content) {
    return "<tool_call>\n<function=write_file>\n<parameter=path>\n%s\n</parameter>\n"
            .formatted(path)
        + "<parameter=content>\n%s\n</parameter>\n</function>\n</tool_call>".formatted(content);
  }

  @Nested
  class Values {
    @ParameterizedTest
    @ValueSource(
        strings = {
          "",
          "\n",
          "\n\n",
          " a ",
          "\n a \n\n b\n",
          "a\r\nb\r",
          "if (a < b && c > d) { return \"<x>\"; }",
          "</think> <think>",
          "see </parameter> and </function> and </tool_call> in docs",
          "ends with </parameter>",
          "ends with </parameter> </function>",
          "ends with </parameter></function></tool_call>",
          "ends with </tool_call>",
          "</tool_call> <tool_call> in one line",
          "Close it with\n</parameter>\nand\n</function>\nand\n</tool_call>\nin lines of their own",
          "Close it with\n</parameter>\n</function>\n</tool_call>\nin this order",
          "Close it with\n</parameter>\n</function>\n</tool_call>",
          "Close it with\n</parameter>\n</function>\n",
          "Open it with\n<tool_call>\n<function=write_file>\nin this order",
          "Open it with\n<parameter=content>",
          "Open it with\n<parameter=unknown>\nonly",
          "A pair:\n<parameter=path>\nx\n</parameter>",
          "A pair: <parameter=path>x</parameter> in a line",
          "an unfinished <tool_call",
          "an unfinished <function=",
        })
    void stayAsTheyAre(String value) {
      ParsedResponse parsed = parse(written("a.md", value));

      assertThat(parsed.calls())
          .containsExactly(new ParsedResponse.Call("write_file", file("a.md", value)));
      assertThat(parsed.answer()).isEmpty();
    }

    @Test
    void mayBeAWholeCall() {
      String value = "Example:\n" + written("b.md", "text") + "\nThat is it.";

      assertThat(onlyCall(written("a.md", value)).arguments()).isEqualTo(file("a.md", value));
    }

    @Test
    void mayBeCallsWithinCalls() {
      String inner = written("c.md", "text");
      String value = inner + "\n" + written("b.md", inner) + "\n" + inner;

      assertThat(onlyCall(written("a.md", value)).arguments()).isEqualTo(file("a.md", value));
    }

    @Test
    void mayBeACallThatStartsWithinALine() {
      String value = "Such as " + written("b.md", "text") + "\nor " + written("c.md", "text") + ".";

      assertThat(onlyCall(written("a.md", value)).arguments()).isEqualTo(file("a.md", value));
    }

    @Test
    void mayBeAnIndentedCall() {
      String value = written("b.md", "text").indent(4);

      assertThat(onlyCall(written("a.md", value)).arguments()).isEqualTo(file("a.md", value));
    }

    @Test
    void mayBeACallWithoutParameters() {
      String value = "<tool_call>\n<function=now>\n</function>\n</tool_call>\n\nand more";

      assertThat(onlyCall(written("a.md", value)).arguments()).isEqualTo(file("a.md", value));
    }

    @Test
    void mayContainEverythingAndBeFollowedByAnotherCall() {
      String value = "x\n</parameter>\n</function>\n</tool_call>\ny";
      ParsedResponse parsed = parse(written("a", value) + "\n" + written("b", value));

      assertThat(parsed.calls())
          .extracting(ParsedResponse.Call::arguments)
          .containsExactly(file("a", value), file("b", value));
    }

    @Test
    void loseOneLineBreakAtEitherEndInEitherForm() {
      assertThat(
              onlyCall(
                      "<tool_call>\r\n<function=write_file>\r\n<parameter=path>\r\na\r\nb\r\n"
                          + "</parameter>\r\n</function>\r\n</tool_call>")
                  .arguments())
          .isEqualTo(TestTools.object("{'path':'a\\r\\nb'}"));
    }
  }

  @Nested
  class Parameters {
    @Test
    void areGivenInTheOrderWritten() {
      assertThat(
              onlyCall(
                      "<tool_call>\n<function=get_weather>\n<parameter=days>\n3\n</parameter>\n"
                          + "<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>")
                  .arguments())
          .hasToString("{\"days\":3,\"city\":\"Oslo\"}");
    }

    @Test
    void countOnceWithTheirLastValue() {
      assertThat(
              onlyCall(
                      "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n"
                          + "<parameter=city>\nBergen\n</parameter>\n</function>\n</tool_call>")
                  .arguments())
          .isEqualTo(TestTools.object("{'city':'Bergen'}"));
    }

    @Test
    void mayBeInventedByTheModel() {
      assertThat(
              onlyCall(
                      "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n"
                          + "<parameter=unit>\n1\n</parameter>\n</function>\n</tool_call>")
                  .arguments())
          .isEqualTo(TestTools.object("{'city':'Oslo','unit':'1'}"));
    }

    @Test
    void mayHaveAnyNameWhereNothingIsDeclared() {
      assertThat(
              onlyCall(
                      "<tool_call>\n<function=unknown>\n<parameter=any name>\n1\n</parameter>\n"
                          + "<parameter=b>\n2\n</parameter>\n</function>\n</tool_call>")
                  .arguments())
          .isEqualTo(TestTools.object("{'any name':'1','b':'2'}"));
    }

    @Test
    void mayBeNone() {
      assertThat(onlyCall("<tool_call>\n<function=now>\n</function>\n</tool_call>").arguments())
          .hasToString("{}");
    }
  }

  @Nested
  class SloppyCalls {
    private static final ObjectNode OSLO = TestTools.object("{'city':'Oslo','days':3}");

    @ParameterizedTest
    @ValueSource(
        strings = {
          "<tool_call><function=get_weather><parameter=city>Oslo</parameter><parameter=days>3</parameter></function></tool_call>",
          "<tool_call>\n<function=get_weather>\n<parameter=city>Oslo</parameter>\n<parameter=days>3</parameter>\n</function>\n</tool_call>",
          "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo</parameter>\n<parameter=days>\n3</parameter>\n</function>\n</tool_call>",
          "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter><parameter=days>\n3\n</parameter></function></tool_call>",
          "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n",
          "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n3\n</parameter>\n",
          "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n3\n</parameter>\n</tool_call>",
          "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n3\n</function>\n</tool_call>",
          "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n3\n</tool_call>",
          "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>",
          "<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n3\n</parameter>\n</function>",
          "<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>",
          "<tool_call>{\"name\":\"get_weather\",\"arguments\":{\"city\":\"Oslo\",\"days\":3}}</tool_call>",
          "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": \"{\\\"city\\\": \\\"Oslo\\\", \\\"days\\\": 3}\"}\n</tool_call>",
          "<tool_call>\n{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Oslo\", \"days\": 3}}\n",
        })
    void areUnderstood(String text) {
      ParsedResponse parsed = parse("Look:\n" + text + "\n");

      assertThat(parsed.calls()).containsExactly(new ParsedResponse.Call("get_weather", OSLO));
      assertThat(parsed.answer()).isEqualTo("Look:");
      assertThat(parsed.order()).isEqualTo("AC");
    }

    @Test
    void mayBeIndentedThroughout() {
      assertThat(
              onlyCall(
                      """
                      <tool_call>
                        <function=get_weather>
                          <parameter=city>Oslo</parameter>
                          <parameter=days>
                          3
                          </parameter>
                        </function>
                      </tool_call>
                      """)
                  .arguments())
          .isEqualTo(OSLO);
    }

    @Test
    void mayShareABlock() {
      ParsedResponse parsed =
          parse(
              "<tool_call>\n<function=now>\n</function>\n<function=other>\n</function>\n"
                  + "<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n"
                  + "<function=now>\n</function>\n</tool_call>");

      assertThat(parsed.calls())
          .extracting(ParsedResponse.Call::name)
          .containsExactly("now", "other", "get_weather", "now");
      assertThat(parsed.order()).isEqualTo("CCCC");
    }

    @Test
    void mayLackTheirBlocksEnd() {
      ParsedResponse parsed =
          parse(
              "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n"
                  + "</function>\n<tool_call>\n<function=now>\n<tool_call>\n<function=now>\n");

      assertThat(parsed.calls())
          .extracting(ParsedResponse.Call::name)
          .containsExactly("get_weather", "now", "now");
    }

    @Test
    void mayBeFollowedByText() {
      ParsedResponse parsed =
          parse(
              "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n"
                  + "</function>\n</tool_call>\nI ask. <tool_call>\n<function=get_weather>\n"
                  + "<parameter=city>\nBergen\n</parameter>\n</function>\nI wait.");

      assertThat(parsed.calls())
          .extracting(call -> call.arguments().path("city").asString())
          .containsExactly("Oslo", "Bergen");
      assertThat(parsed.answer()).isEqualTo("I ask.\nI wait.");
      assertThat(parsed.order()).isEqualTo("CACA");
    }

    @Test
    void mayCloseTheirBlockTwice() {
      ParsedResponse parsed =
          parse("<tool_call>\n<function=now>\n</function>\n</tool_call>\n</tool_call>\n");

      assertThat(parsed.order()).isEqualTo("C");
    }

    @ParameterizedTest
    @ValueSource(
        strings = {
          "<tool_call>\n<function=get_weather>\n<parameter=city>\nOs",
          "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter",
          "<tool_call>\n<function=get_weather>\n<parameter=days>\n3\n</parameter>",
          "<tool_call>{\"name\":\"now\",\"arguments\":{\"a\":\"b",
        })
    void areIncompleteIfAValueIsOpenOrMissing(String text) {
      ParsedResponse parsed = parse("Look:\n" + text);

      assertThat(parsed.calls()).isEmpty();
      assertThat(parsed.answer()).isEqualTo("Look:");
      assertThat(parsed.incomplete()).containsExactly(text);
    }
  }

  @Test
  void keepsTheNameOfAToolThatIsNotThere() {
    assertThat(onlyCall("<tool_call>\n<function=get_wether>\n</function>\n</tool_call>").name())
        .isEqualTo("get_wether");
  }

  @Test
  void keepsTheTypesOfAJsonCall() {
    assertThat(
            onlyCall(
                    "<tool_call>{\"name\":\"get_weather\",\"arguments\":{\"city\":\"a\\\"}\","
                        + "\"days\":\"3\",\"big\":12345678901234567890,\"x\":[{}]}}</tool_call>")
                .arguments())
        .hasToString(
            "{\"city\":\"a\\\"}\",\"days\":\"3\",\"big\":12345678901234567890,\"x\":[{}]}");
  }
}
