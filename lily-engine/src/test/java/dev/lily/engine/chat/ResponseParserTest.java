package dev.lily.engine.chat;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.json.JsonMapper;

class ResponseParserTest {
  private static final String CALL =
      """
      <tool_call>
      <function=get_weather>
      <parameter=city>
      Oslo
      </parameter>
      </function>
      </tool_call>""";

  private static ParsedResponse thinking(String... pieces) {
    return ParsedResponse.of(TestTools.ALL, true, false, List.of(pieces));
  }

  private static ParsedResponse plain(String... pieces) {
    return ParsedResponse.of(TestTools.ALL, false, false, List.of(pieces));
  }

  private static ParsedResponse cutOff(boolean thinking, String text) {
    return ParsedResponse.of(TestTools.ALL, thinking, true, List.of(text));
  }

  @Nested
  class Reasoning {
    @Test
    void endsAtTheFirstClosingTagWithoutTheLineBreaksAroundIt() {
      ParsedResponse parsed = thinking("Add the numbers.\n</think>\n\nThe sum is 4.");

      assertThat(parsed.reasoning()).isEqualTo("Add the numbers.");
      assertThat(parsed.answer()).isEqualTo("The sum is 4.");
    }

    @Test
    void keepsTheIndentationOfTheAnswer() {
      assertThat(thinking("So.\n</think>\n\n    code\n").answer()).isEqualTo("    code\n");
    }

    @Test
    void keepsLineBreaksWithin() {
      assertThat(thinking("\n\na\n\n b \n\n</think>x").reasoning()).isEqualTo("a\n\n b ");
    }

    @Test
    void isEverythingIfTheLimitCameBeforeItsEnd() {
      ParsedResponse parsed = cutOff(true, "First I consider the train");

      assertThat(parsed.reasoning()).isEqualTo("First I consider the train");
      assertThat(parsed.answer()).isEmpty();
    }

    @Test
    void isEverythingIfTheModelNeverClosesIt() {
      ParsedResponse parsed = thinking("I am done.\n");

      assertThat(parsed.reasoning()).isEqualTo("I am done.");
      assertThat(parsed.answer()).isEmpty();
    }

    @Test
    void endsOnceOnly() {
      ParsedResponse parsed = thinking("a</think>b</think>b</think>");

      assertThat(parsed.reasoning()).isEqualTo("a");
      assertThat(parsed.answer()).isEqualTo("b</think>b</think>");
    }

    @Test
    void dropsARepeatedOpeningTag() {
      assertThat(thinking("\n<think>\n<think>\nHm <think>.</think>x").reasoning())
          .isEqualTo("Hm <think>.");
    }

    @Test
    void mayBeEmpty() {
      ParsedResponse parsed = thinking("\n</think>\n\nHi");

      assertThat(parsed.order()).isEqualTo("A");
      assertThat(parsed.answer()).isEqualTo("Hi");
    }

    @Test
    void doesNotExistWhenThinkingIsOff() {
      assertThat(plain("<think>a</think>\nb").answer()).isEqualTo("<think>a</think>\nb");
    }

    @Test
    void leavesTheAnswerIntactWhereverTheClosingTagIsCut() {
      String text = "so done.\n</think>{\"l\":\"London\"}";
      List<List<String>> cuts = new ArrayList<>();
      cuts.add(List.of("so done.", "\n</think", ">{", "\"l\":", "\"London\"}"));
      for (int i = 0; i <= text.length(); i++) {
        for (int j = i; j <= text.length(); j++) {
          cuts.add(ParsedResponse.cut(text, i, j));
        }
      }

      for (List<String> pieces : cuts) {
        List<ResponsePart> parts = ParsedResponse.parts(List.of(), true, false, pieces);
        ParsedResponse parsed = ParsedResponse.join(parts);
        assertThat(parsed.reasoning()).isEqualTo("so done.");
        assertThat(JsonMapper.shared().readTree(parsed.answer()))
            .isEqualTo(TestTools.object("{'l':'London'}"));
        assertThat(parts)
            .allSatisfy(part -> assertThat(part.toString()).doesNotContain("<", "/", "think", ">"));
      }
    }

    @Test
    void isToldWhileItLasts() {
      ResponseParser parser = new ResponseParser(TestTools.ALL, true, part -> {});
      assertThat(parser.isReasoning()).isTrue();
      parser.accept("Hm </thi");
      assertThat(parser.isReasoning()).isTrue();
      parser.accept("nk>");
      assertThat(parser.isReasoning()).isFalse();
      assertThat(new ResponseParser(TestTools.ALL, false, part -> {}).isReasoning()).isFalse();
    }
  }

  @Nested
  class CallsInTheReasoning {
    @Test
    void endItIfTheAnswerEndsWithThem() {
      ParsedResponse parsed = thinking("I will ask.\n" + CALL + "\n" + CALL + "\n");

      assertThat(parsed.reasoning()).isEqualTo("I will ask.");
      assertThat(parsed.calls()).hasSize(2);
      assertThat(parsed.order()).isEqualTo("RCC");
    }

    @Test
    void areThoughtsIfItIsClosedLater() {
      ParsedResponse parsed = thinking("Maybe\n" + CALL + "\n</think>\n\nNo.");

      assertThat(parsed.reasoning()).isEqualTo("Maybe\n" + CALL);
      assertThat(parsed.answer()).isEqualTo("No.");
      assertThat(parsed.calls()).isEmpty();
    }

    @Test
    void areThoughtsIfItGoesOn() {
      ParsedResponse parsed = thinking("Maybe\n" + CALL + "\nbut rather not.");

      assertThat(parsed.reasoning()).isEqualTo("Maybe\n" + CALL + "\nbut rather not.");
      assertThat(parsed.order()).isEqualTo("R");
    }

    @Test
    void areThoughtsIfTheLimitLeavesOpenHowItWouldHaveGoneOn() {
      ParsedResponse parsed = cutOff(true, "Maybe\n" + CALL + "\n");

      assertThat(parsed.reasoning()).isEqualTo("Maybe\n" + CALL);
      assertThat(parsed.order()).isEqualTo("R");
    }

    @Test
    void areReleasedAsSoonAsTheyAreKnownToBeThoughts() {
      List<ResponsePart> parts = new ArrayList<>();
      ResponseParser parser = new ResponseParser(TestTools.ALL, true, parts::add);
      parser.accept("Maybe\n" + CALL);
      assertThat(ParsedResponse.join(parts).reasoning()).isEqualTo("Maybe");
      parser.accept(" or not");
      assertThat(ParsedResponse.join(parts).reasoning()).isEqualTo("Maybe\n" + CALL + " or not");
      assertThat(parser.isReasoning()).isTrue();
    }

    @Test
    void areNotMissedAfterAThoughtAboutOne() {
      ParsedResponse parsed = thinking("Maybe\n" + CALL + "\nYes.\n</think>\n\n" + CALL);

      assertThat(parsed.reasoning()).isEqualTo("Maybe\n" + CALL + "\nYes.");
      assertThat(parsed.calls()).hasSize(1);
      assertThat(parsed.answer()).isEmpty();
    }

    @Test
    void needTheFunctionTag() {
      ParsedResponse parsed = thinking("The tag <tool_call> is\n<tool_call>\n");

      assertThat(parsed.reasoning()).isEqualTo("The tag <tool_call> is\n<tool_call>");
      assertThat(parsed.order()).isEqualTo("R");
    }

    @Test
    void areNeverExecutedHalf() {
      ParsedResponse parsed =
          thinking("Hm\n<tool_call>\n<function=get_weather>\n<parameter=city>\nOs");

      assertThat(parsed.reasoning()).isEqualTo("Hm");
      assertThat(parsed.order()).isEqualTo("RI");
    }
  }

  @Nested
  class Text {
    @Test
    void isGivenOutAtOnceUpToAPossibleTag() {
      List<ResponsePart> parts = new ArrayList<>();
      ResponseParser parser = new ResponseParser(TestTools.ALL, false, parts::add);

      parser.accept("a < b <b> <tool_c");
      assertThat(ParsedResponse.join(parts).answer()).isEqualTo("a < b <b>");
      parser.accept("at>");
      assertThat(ParsedResponse.join(parts).answer()).isEqualTo("a < b <b> <tool_cat>");
    }

    @Test
    void losesTheWhitespaceBeforeACallOnly() {
      ParsedResponse parsed = plain("Let me look. \n\n" + CALL + "\n\n");

      assertThat(parsed.answer()).isEqualTo("Let me look.");
      assertThat(parsed.order()).isEqualTo("AC");
    }

    @Test
    void keepsItsWhitespaceWithoutACall() {
      assertThat(plain(" \n a \n ").answer()).isEqualTo(" \n a \n ");
    }

    @Test
    void staysInOrderBetweenCalls() {
      ParsedResponse parsed = plain("First.\n" + CALL + "\nThen.\n" + CALL + "\n");

      assertThat(parsed.order()).isEqualTo("ACAC");
      assertThat(parsed.answer()).isEqualTo("First.\nThen.");
    }

    @Test
    void mayFollowACall() {
      ParsedResponse parsed = plain(CALL + "\n\nI have asked.\n");

      assertThat(parsed.order()).isEqualTo("CA");
      assertThat(parsed.answer()).isEqualTo("I have asked.\n");
    }

    @ParameterizedTest
    @ValueSource(
        strings = {
          "<tool_call>",
          "Write <tool_call> first.",
          "<tool_call>\n</tool_call>",
          "<tool_call>\n<function={name}>\n</function>\n</tool_call>",
          "<tool_call>\n<function=>\n</function>\n</tool_call>",
          "<tool_call>\n<function=my tool>\n</function>\n</tool_call>",
          "<tool_call>\n<function=\"now\">\n</function>\n</tool_call>",
          "<tool_call>\n<function=a<b>\n</function>\n</tool_call>",
          "<tool_call>\n<function=now> is how a call starts.",
          "The tag <function=now> is how a call starts.",
          "The tag is <function=now>",
          "<function=unknown>\n</function>",
          "<tool_call>{\"a\":1}</tool_call>",
          "<tool_call>{name}</tool_call>",
          "<tool_call>{\"name\":\"now\",\"arguments\":[1]}</tool_call>",
          "a <",
          "a </",
          "a <tool_call",
          "a <function=no",
          "</tool_call>",
          "<parameter=x>"
        })
    void isWhatIsNotACall(String text) {
      ParsedResponse parsed = plain(text);

      assertThat(parsed.answer()).isEqualTo(text);
      assertThat(parsed.order()).isEqualTo("A");
    }

    @Test
    void isEverythingWithoutTools() {
      ParsedResponse parsed = ParsedResponse.of(List.of(), false, false, List.of("A " + CALL));

      assertThat(parsed.answer()).isEqualTo("A " + CALL);
      assertThat(parsed.order()).isEqualTo("A");
    }

    @Test
    void isEverythingAfterTheReasoningWithoutTools() {
      ParsedResponse parsed =
          ParsedResponse.of(List.of(), true, false, List.of("Hm\n</think>\n\n" + CALL + "\n"));

      assertThat(parsed.answer()).isEqualTo(CALL + "\n");
    }

    @Test
    void mayBeEmpty() {
      assertThat(ParsedResponse.parts(TestTools.ALL, false, false, List.of())).isEmpty();
      assertThat(ParsedResponse.parts(TestTools.ALL, true, true, List.of(""))).isEmpty();
    }
  }

  @Nested
  class CutOffAnswers {
    @ParameterizedTest
    @ValueSource(
        strings = {
          "<tool_call>",
          "<tool_call>\n",
          "<tool_call>\n<func",
          "<tool_call>\n<function=get_wea",
          "<tool_call>\n<function=get_weather>",
          "<tool_call>\n<function=get_weather>\n<para",
          "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo",
          "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n",
          "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n",
          "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo</parameter></function></tool_call>",
          "<tool_call>{\"name\":\"now\",",
          "<function=get_wea",
          "<function=get_weather>\n<parameter=city>\nOs"
        })
    void haveNoCallThatIsNotComplete(String call) {
      ParsedResponse parsed = cutOff(false, "Look:\n" + call);

      assertThat(parsed.answer()).isEqualTo("Look:");
      assertThat(parsed.calls()).isEmpty();
      assertThat(parsed.incomplete()).containsExactly(call);
    }

    @Test
    void haveTheCallsThatAreComplete() {
      ParsedResponse parsed = cutOff(false, CALL + "\n" + CALL + "\n<tool_call>\n<function=");

      assertThat(parsed.calls()).hasSize(2);
      assertThat(parsed.incomplete()).containsExactly("<tool_call>\n<function=");
    }

    @Test
    void keepTextThatOnlyStartsLikeATag() {
      assertThat(cutOff(false, "a <function=unk").answer()).isEqualTo("a <function=unk");
      assertThat(cutOff(false, "a <").answer()).isEqualTo("a <");
    }
  }

  @Test
  void givesEveryCallItsOwnId() {
    List<ResponsePart> parts =
        ParsedResponse.parts(TestTools.ALL, false, false, List.of((CALL + "\n").repeat(1000)));

    Set<String> ids = new HashSet<>();
    for (ResponsePart part : parts) {
      assertThat(part).isInstanceOf(ResponsePart.CalledTool.class);
      ids.add(((ResponsePart.CalledTool) part).call().id());
    }
    assertThat(ids).hasSize(1000).allMatch(id -> id.matches("call_[0-9A-Za-z]{24}"));
  }

  @Test
  void takesNothingAfterTheEnd() {
    List<ResponsePart> parts = new ArrayList<>();
    ResponseParser parser = new ResponseParser(List.of(), false, parts::add);
    parser.accept("a\n");
    parser.finish(false);
    parser.finish(true);

    assertThat(ParsedResponse.join(parts).answer()).isEqualTo("a\n");
    assertThatThrownBy(() -> parser.accept("b")).isInstanceOf(IllegalStateException.class);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "<",
        "\n",
        "<think>",
        "</think>",
        "<tool_call>",
        "<function=now>",
        "<tool_call>{\"a\"",
        "<tool_call>\n<function=write_file>\n<parameter=path>\n",
        "<parameter=path>\n1\n</parameter>\n",
        "</parameter>\n</function>\n</tool_call>\nx\n"
      })
  void readsLongRunsOfTagsInLinearTime(String tags) {
    String text = tags.repeat(300_000 / tags.length());
    String opening = "<tool_call>\n<function=write_file>\n<parameter=content>\n";
    for (String start : List.of("", "x", opening)) {
      List<String> pieces = new ArrayList<>();
      pieces.add(start);
      for (int i = 0; i < text.length(); i += 3) {
        pieces.add(text.substring(i, Math.min(text.length(), i + 3)));
      }
      for (boolean thinking : new boolean[] {false, true}) {
        ParsedResponse whole =
            ParsedResponse.of(TestTools.ALL, thinking, true, List.of(start + text));
        ParsedResponse streamed = ParsedResponse.of(TestTools.ALL, thinking, true, pieces);
        assertThat(streamed.equals(whole)).isTrue();
      }
    }
  }
}
