package dev.lily.engine.constraint;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import tools.jackson.databind.json.JsonMapper;

class AnswerShapeTest {
  private static final AnswerShape.Markup MARKUP =
      new AnswerShape.Markup("\u00F8", "\u00F9", "\u00FA");
  private static final JsonMapper MAPPER = JsonMapper.builder().build();

  private static AnswerShape.Tool tool(String name, String parameters) {
    return new AnswerShape.Tool(
        name, MAPPER.readTree(parameters.replace('\'', '"')), "/tools/0/function/parameters");
  }

  private static Grammar shape(
      boolean reasoning,
      @Nullable OutputConstraint answer,
      AnswerShape.Calls calls,
      boolean parallel,
      AnswerShape.Tool... tools) {
    return new AnswerShape(MARKUP, reasoning, answer, List.of(tools), calls, parallel).compile();
  }

  /** Writes text in which «, » and ⊣ stand for the marks of a call and of the reasoning's end. */
  private static boolean accepts(Grammar grammar, String text) {
    String bytes = new String(text.getBytes(UTF_8), ISO_8859_1);
    for (String[] mark : new String[][] {{"«", "\u00F8"}, {"»", "\u00F9"}, {"⊣", "\u00FA"}}) {
      bytes = bytes.replace(new String(mark[0].getBytes(UTF_8), ISO_8859_1), mark[1]);
    }
    return Texts.accepts(grammar, bytes.getBytes(ISO_8859_1));
  }

  private static final AnswerShape.Tool WEATHER =
      tool(
          "weather",
          "{'type':'object','properties':{'city':{'type':'string'},"
              + "'days':{'type':'integer','minimum':1,'maximum':9}},'required':['city']}");

  private static String call(String name, String... arguments) {
    StringBuilder call = new StringBuilder("«\n<function=" + name + ">\n");
    for (int i = 0; i < arguments.length; i += 2) {
      call.append("<parameter=" + arguments[i] + ">\n" + arguments[i + 1] + "\n</parameter>\n");
    }
    return call + "</function>\n»";
  }

  @Test
  void reasoningIsFreeAndTheAnswerBehindItIsNot() {
    Grammar grammar =
        shape(true, new OutputConstraint.JsonObject(), AnswerShape.Calls.ALLOWED, true);
    assertThat(accepts(grammar, "So {\"a\" …\n⊣\n\n{\"a\":1}")).isTrue();
    assertThat(accepts(grammar, "⊣\n\n{}")).isTrue();
    assertThat(accepts(grammar, "{}")).isFalse();
    assertThat(accepts(grammar, "x⊣\n\ny")).isFalse();
    assertThat(accepts(grammar, "x</think>\n\n{}⊣\n\n{}")).isFalse();
    assertThat(accepts(grammar, "x⊣{}")).isFalse();
  }

  @Test
  void aToolMayBeCalledInsteadOfTheAnswer() {
    Grammar grammar =
        shape(false, new OutputConstraint.JsonObject(), AnswerShape.Calls.ALLOWED, true, WEATHER);
    assertThat(accepts(grammar, "{}")).isTrue();
    assertThat(accepts(grammar, call("weather", "city", "Oslo"))).isTrue();
    assertThat(accepts(grammar, call("weather", "city", "Oslo") + "{}")).isFalse();
    assertThat(accepts(grammar, "{}" + call("weather", "city", "Oslo"))).isFalse();
    assertThat(accepts(grammar, "Hello")).isFalse();
  }

  @Test
  void textMayComeBeforeACallThatFollowsItsSchema() {
    Grammar grammar = shape(false, null, AnswerShape.Calls.ALLOWED, true, WEATHER);
    assertThat(accepts(grammar, "Just text, even {\"a\": <b>.")).isTrue();
    assertThat(accepts(grammar, "")).isTrue();
    assertThat(accepts(grammar, "Let me look.\n\n" + call("weather", "city", "Oslo"))).isTrue();
    assertThat(accepts(grammar, "x <tool_call>\n<function=weather>")).isFalse();
    assertThat(accepts(grammar, call("weather", "city", "Oslo", "days", "many"))).isFalse();
  }

  @Test
  void aRequiredCallIsAllThereIs() {
    Grammar grammar = shape(false, null, AnswerShape.Calls.REQUIRED, true, WEATHER);
    assertThat(accepts(grammar, "")).isFalse();
    assertThat(accepts(grammar, "Hello")).isFalse();
    assertThat(accepts(grammar, call("weather", "city", "a", "days", "3"))).isTrue();
    assertThat(accepts(grammar, call("weather", "city", "a") + "\n" + call("weather", "city", "b")))
        .isTrue();
    assertThat(accepts(grammar, call("nope", "city", "a"))).isFalse();
    assertThat(accepts(grammar, call("weather", "days", "3"))).isFalse();
    assertThat(accepts(grammar, call("weather", "days", "3", "city", "a"))).isFalse();
    assertThat(accepts(grammar, call("weather", "city", "a", "city", "b"))).isFalse();
  }

  @Test
  void oneCallIsOneCall() {
    Grammar grammar = shape(false, null, AnswerShape.Calls.REQUIRED, false, WEATHER);
    String call = call("weather", "city", "a");
    assertThat(accepts(grammar, call)).isTrue();
    assertThat(accepts(grammar, call + "\n" + call)).isFalse();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      textBlock =
          """
          {'type':'string'}                          | any "text", {even} <b> null          | a</parameter>b
          {'type':'string','maxLength':3}            | äöü                                  | abcd
          {'type':'string','minLength':2}            | ab                                   | a
          {'type':'string','pattern':'^\\\\d{5}$'}   | 01234                                | 0123
          {'enum':['red','dark blue',3]}             | dark blue                            | "red"
          {'type':'integer'}                         | -7                                   | seven
          {'type':'boolean'}                         | true                                 | True
          {'type':['string','null']}                 | null                                 | a<function=b
          {'type':['integer','string']}              | five                                 | 5.5
          {'anyOf':[{'type':'integer'},{'type':'string'}]} | 5                              | {"a":1}
          {'anyOf':[{'type':'null'},{'type':'string','maxLength':4}]} | abcd                | abcde
          {'type':'array','items':{'type':'string'}} | ["a", "</parameter>"]                | [1]
          {'type':'object','properties':{'k':{'type':'null'}}} | {"k": null}                | {"k":1}
          {'$ref':'#/$defs/d'}                       | [true]                               | [1]
          {'description':'anything'}                 | words                                | a</function>
          """)
  void argumentsAreWrittenAsTheFormatHasThem(String schema, String right, String wrong) {
    Grammar grammar =
        shape(
            false,
            null,
            AnswerShape.Calls.REQUIRED,
            true,
            tool(
                "t",
                "{'type':'object','properties':{'p':"
                    + schema
                    + "},'$defs':{'d':{'type':'array','items':{'type':'boolean'}}}}"));
    assertThat(accepts(grammar, call("t", "p", right))).as(right).isTrue();
    assertThat(accepts(grammar, call("t", "p", wrong))).as(wrong).isFalse();
    assertThat(accepts(grammar, call("t"))).isTrue();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          {'properties':{'a':{'type':'array','uniqueItems':true}}} | /properties/a/uniqueItems
          {'type':'array'}                                         | /type
          {'anyOf':[{'required':['a']}]}                           | /anyOf
          {'minProperties':1}                                      | /minProperties
          {'required':['a']}                                       | /required
          {'properties':{'a>b':{}}}                                | /properties/a>b
          {'properties':{'a':{'enum':['</parameter>']}}}           | /properties/a
          {'properties':{'a':{'anyOf':[{'type':'string'},{'type':'string'}]}}} | /properties/a/anyOf
          """)
  void refusesArgumentsThatItCannotEnforce(String parameters, String path) {
    AnswerShape.Tool tool = tool("t", parameters);
    assertThatThrownBy(() -> shape(false, null, AnswerShape.Calls.REQUIRED, true, tool))
        .isInstanceOfSatisfying(
            InvalidConstraintException.class,
            e -> assertThat(e.path()).isEqualTo("/tools/0/function/parameters" + path));
  }
}
