package dev.lily.engine.generation;

import static dev.lily.engine.generation.ManualScheduler.answer;
import static dev.lily.engine.generation.ManualScheduler.model;
import static dev.lily.engine.generation.ManualScheduler.prompt;
import static dev.lily.engine.generation.ManualScheduler.saying;
import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.chat.ResponsePart;
import dev.lily.engine.chat.ToolDefinition;
import dev.lily.engine.model.ScriptedModel;
import dev.lily.engine.model.ScriptedModel.Script;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.ObjectMapper;
import tools.jackson.databind.node.ObjectNode;

/** What becomes of a model's tokens. */
class AnswerTest {
  private static final String CALL =
      "<tool_call>\n<function=weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>";

  private static final ToolDefinition WEATHER =
      ToolDefinition.of(
          "weather",
          "Weather of a city",
          (ObjectNode)
              new ObjectMapper()
                  .readTree(
                      "{\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\"}}}"));

  private static Recorder run(
      ScriptedModel model, boolean thinking, UnaryOperator<GenerationRequest.Builder> fields) {
    ManualScheduler s = ManualScheduler.of(model);
    Recorder recorder = s.submit(prompt(1, 3), thinking, fields, new Recorder());
    s.finish();
    return recorder;
  }

  private static Recorder run(String text, UnaryOperator<GenerationRequest.Builder> fields) {
    return run(saying(text).build(), false, fields);
  }

  @Test
  void endsWithTheStopTokenWhichIsCountedButNotWritten() {
    Recorder r = run("Hello there, fox.", b -> b);
    assertThat(r.text()).isEqualTo("Hello there, fox.");
    assertThat(r.completed().reason()).isEqualTo(FinishReason.STOP);
    assertThat(r.completed().usage())
        .isEqualTo(new Usage(3, answer("Hello there, fox.").length, 0, 0));
  }

  @Test
  void endsAtTheTokenLimit() {
    Recorder r = run("one two three four five", b -> b.maxTokens(1));
    assertThat(r.completed().reason()).isEqualTo(FinishReason.LENGTH);
    assertThat(r.completed().usage().completionTokens()).isEqualTo(1);
    assertThat(r.text()).isEqualTo(Nano.TOKENIZER.decode(new int[] {answer("one two")[0]}));
  }

  @Test
  void endsAsStopWhenTheLastTokenAllowedIsAStopToken() {
    int length = answer("one two three").length;
    assertThat(run("one two three", b -> b.maxTokens(length)).completed().reason())
        .isEqualTo(FinishReason.STOP);
    assertThat(run("one two three", b -> b.maxTokens(length - 1)).completed().reason())
        .isEqualTo(FinishReason.LENGTH);
  }

  @Test
  void endsAtTheContextWindowWhateverWasAskedFor() {
    ScriptedModel model = model(Script.saying(answer("fox")[0])).build();
    ManualScheduler s =
        new ManualScheduler(model, new SchedulerOptions(8, 64, 32, 20, Duration.ofSeconds(60)));
    Recorder unlimited = s.submit(prompt(1, 12), b -> b);
    Recorder tooMuch = s.submit(prompt(2, 19), b -> b.maxTokens(100));
    s.finish();
    assertThat(unlimited.completed().reason()).isEqualTo(FinishReason.LENGTH);
    assertThat(unlimited.completed().usage()).isEqualTo(new Usage(12, 8, 0, 0));
    assertThat(tooMuch.completed().usage()).isEqualTo(new Usage(19, 1, 0, 0));
  }

  @Test
  void endsRightBeforeAStopStringThatSpansTokens() {
    Recorder r = run("The quick brown fox jumps over", b -> b.stopStrings(List.of("own fox")));
    assertThat(r.text()).isEqualTo("The quick br");
    assertThat(r.completed().reason()).isEqualTo(FinishReason.STOP);
    assertThat(r.completed().usage().completionTokens())
        .isLessThan(answer("The quick brown fox jumps over").length);
  }

  @Test
  void writesWhatWasHeldForAStopStringThatDidNotCome() {
    assertThat(run("The quick brown fo", b -> b.stopStrings(List.of("fox"))).text())
        .isEqualTo("The quick brown fo");
    Recorder cut =
        run(
            "The quick brown fox",
            b ->
                b.stopStrings(List.of("x jumps"))
                    .maxTokens(answer("The quick brown fox").length - 1));
    assertThat(cut.text()).isEqualTo("The quick brown fox");
    assertThat(cut.completed().reason()).isEqualTo(FinishReason.LENGTH);
  }

  @Test
  void looksForStopStringsInTheAnswerNotInTheReasoning() {
    Recorder r =
        run(
            saying("Look: a fox\n</think>\n\nIt is a fox, surely").build(),
            true,
            b -> b.stopStrings(List.of("fox")));
    assertThat(r.reasoning()).isEqualTo("Look: a fox");
    assertThat(r.text()).isEqualTo("It is a ");
    assertThat(r.completed().reason()).isEqualTo(FinishReason.STOP);
  }

  @Test
  void looksForStopStringsInTheAnswerNotInToolCalls() {
    Recorder r =
        run(
            "Let me see.\n\n" + CALL,
            b -> b.tools(List.of(WEATHER)).stopStrings(List.of("Paris", "function")));
    assertThat(r.parts(ResponsePart.CalledTool.class)).hasSize(1);
    assertThat(r.completed().reason()).isEqualTo(FinishReason.TOOL_CALLS);
  }

  @Test
  void keepsTheOrderOfTextHeldForAStopStringAndATool() {
    Recorder r = run("Now fo" + CALL, b -> b.tools(List.of(WEATHER)).stopStrings(List.of("fox")));
    assertThat(r.text()).isEqualTo("Now fo");
    List<ResponsePart> parts = r.parts(ResponsePart.class);
    assertThat(parts.getLast()).isInstanceOf(ResponsePart.CalledTool.class);
    assertThat(r.completed().reason()).isEqualTo(FinishReason.TOOL_CALLS);
  }

  @Test
  void keepsTheOrderOfTextHeldForAStopStringAndACallThatWasCut() {
    String text = "Now fo" + CALL;
    Recorder r =
        run(
            text,
            b ->
                b.tools(List.of(WEATHER))
                    .stopStrings(List.of("fox"))
                    .maxTokens(answer(text).length - 6));
    assertThat(r.text()).isEqualTo("Now fo");
    List<ResponsePart> parts = r.parts(ResponsePart.class);
    assertThat(parts.getLast()).isInstanceOf(ResponsePart.IncompleteToolCall.class);
  }

  @Test
  void aStopStringThatCompletesAtTheLimitIsAStop() {
    // The parser holds "<tool" back, since it may begin a call, until the limit ends the answer.
    int limit = Nano.ids("a <tool").length;
    Recorder r =
        run(
            "a <tool> b",
            b -> b.tools(List.of(WEATHER)).stopStrings(List.of("<tool")).maxTokens(limit));
    assertThat(r.text()).isEqualTo("a ");
    assertThat(r.completed().reason()).isEqualTo(FinishReason.STOP);
  }

  @Test
  void countsTheTokensOfTheReasoning() {
    String thought = "I see a fox\n</think>";
    Recorder r = run(saying(thought + "\n\nHello").build(), true, b -> b);
    assertThat(r.reasoning()).isEqualTo("I see a fox");
    assertThat(r.text()).isEqualTo("Hello");
    assertThat(r.completed().usage().reasoningTokens()).isEqualTo(Nano.ids(thought).length);
  }

  @Test
  void aThoughtCutByTheLimitIsAllReasoning() {
    Recorder r = run(saying("First I consider the train").build(), true, b -> b.maxTokens(4));
    assertThat(r.text()).isEmpty();
    assertThat(r.reasoning())
        .isNotEmpty()
        .isEqualTo(Nano.TOKENIZER.decode(Arrays.copyOf(answer("First I consider the train"), 4)));
    assertThat(r.completed().reason()).isEqualTo(FinishReason.LENGTH);
    assertThat(r.completed().usage()).isEqualTo(new Usage(3, 4, 4, 0));
  }

  @Test
  void reportsToolCalls() {
    Recorder r = run(CALL, b -> b.tools(List.of(WEATHER)));
    assertThat(r.parts(ResponsePart.CalledTool.class))
        .singleElement()
        .satisfies(
            part -> {
              assertThat(part.call().name()).isEqualTo("weather");
              assertThat(part.call().arguments().get("city").stringValue()).isEqualTo("Paris");
            });
    assertThat(r.completed().reason()).isEqualTo(FinishReason.TOOL_CALLS);
  }

  @Test
  void aCallCutByTheLimitIsIncomplete() {
    int cut = Nano.ids(CALL.substring(0, CALL.indexOf("ris"))).length;
    Recorder r = run(CALL, b -> b.tools(List.of(WEATHER)).maxTokens(cut));
    assertThat(r.parts(ResponsePart.CalledTool.class)).isEmpty();
    assertThat(r.parts(ResponsePart.IncompleteToolCall.class)).hasSize(1);
    assertThat(r.completed().reason()).isEqualTo(FinishReason.LENGTH);
  }

  @Test
  void aCallThatLacksOnlyItsLastTagIsIncompleteWhenTheLimitCutIt() {
    String cut = CALL.substring(0, CALL.indexOf("\n</tool_call>"));
    Recorder limited = run(CALL, b -> b.tools(List.of(WEATHER)).maxTokens(Nano.ids(cut).length));
    assertThat(limited.parts(ResponsePart.CalledTool.class)).isEmpty();
    assertThat(limited.parts(ResponsePart.IncompleteToolCall.class)).hasSize(1);
    assertThat(limited.completed().reason()).isEqualTo(FinishReason.LENGTH);
    Recorder sloppy = run(cut, b -> b.tools(List.of(WEATHER)));
    assertThat(sloppy.parts(ResponsePart.CalledTool.class)).hasSize(1);
    assertThat(sloppy.completed().reason()).isEqualTo(FinishReason.TOOL_CALLS);
  }

  @Test
  void staysLengthWhenTheLimitComesAfterACompleteCall() {
    Recorder r =
        run(
            CALL + "\n" + CALL,
            b -> b.tools(List.of(WEATHER)).maxTokens(Nano.ids(CALL).length + 4));
    assertThat(r.parts(ResponsePart.CalledTool.class)).hasSize(1);
    assertThat(r.completed().reason()).isEqualTo(FinishReason.LENGTH);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void forbidsStopTokensUntilTheLeastNumberOfTokens(int depth) {
    ScriptedModel model = model(Script.saying(Nano.END)).maxPassesInFlight(depth).build();
    Recorder r = run(model, false, b -> b.minTokens(3));
    assertThat(r.completed().usage().completionTokens()).isEqualTo(4);
    assertThat(r.completed().reason()).isEqualTo(FinishReason.STOP);
    assertThat(model.device().calls())
        .containsExactly(
            "beginSampling 0", "maskTokens 0 some", "clearSlot 0", "maskTokens 0 none");
  }

  @Test
  void setsNoMaskWithoutALeastNumberOfTokens() {
    ScriptedModel model = saying("ok").build();
    run(model, false, b -> b);
    assertThat(model.device().calls()).containsExactly("beginSampling 0", "clearSlot 0");
  }

  @Test
  void endsAtTheLimitEvenIfThatIsTheLeastNumberOfTokens() {
    ScriptedModel model = model(Script.saying(Nano.END)).build();
    Recorder r = run(model, false, b -> b.minTokens(3).maxTokens(3));
    assertThat(r.completed().reason()).isEqualTo(FinishReason.LENGTH);
    assertThat(r.completed().usage().completionTokens()).isEqualTo(3);
  }

  @Test
  void stopStringsDoNotCountInTheFirstTokens() {
    String text = "a fox and a fox and a fox";
    int first = Nano.ids("a fox").length;
    Recorder r = run(text, b -> b.minTokens(first).stopStrings(List.of("fox")));
    assertThat(r.text()).isEqualTo("a fox and a ");
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void passesLogprobsOfEveryTokenOn(int depth) {
    ScriptedModel model = saying("one two").maxPassesInFlight(depth).build();
    Recorder r = run(model, false, b -> b.topLogprobs(2));
    int[] expected = answer("one two");
    assertThat(r.logprobs())
        .extracting(TokenLogprob::id)
        .containsExactlyElementsOf(IntStream.of(expected).boxed().toList());
    assertThat(r.logprobs())
        .allSatisfy(
            l -> {
              assertThat(l.logprob()).isEqualTo(ScriptedModel.logprob(l.id()));
              assertThat(l.bytes()).isEqualTo(Nano.TOKENIZER.bytes(l.id()));
              assertThat(l.top()).extracting(TokenLogprob::id).containsExactly(l.id(), l.id() + 1);
              assertThat(l.top())
                  .extracting(TokenLogprob::logprob)
                  .containsExactly(
                      ScriptedModel.logprob(l.id()), ScriptedModel.logprob(l.id() + 1));
            });
  }

  @Test
  void passesLogprobsWithoutAlternativesOn() {
    Recorder r = run(saying("one two").build(), false, b -> b.topLogprobs(0));
    assertThat(r.logprobs())
        .hasSameSizeAs(answer("one two"))
        .allSatisfy(l -> assertThat(l.top()).isEmpty());
  }

  @Test
  void reportsNoLogprobsUnlessAsked() {
    assertThat(run("one two", b -> b).logprobs()).isEmpty();
  }

  @Test
  void marksACharacterThatStayedIncomplete() {
    int[] emoji = Nano.ids("\ud83e\udd8a");
    assertThat(emoji.length).isGreaterThan(1);
    Recorder r = run("\ud83e\udd8a", b -> b.maxTokens(1));
    assertThat(r.text()).isEqualTo("\ufffd");
    assertThat(run("\ud83e\udd8a", b -> b).text()).isEqualTo("\ud83e\udd8a");
  }

  @Test
  void measuresWhereTheTimeWent() {
    ManualScheduler s = ManualScheduler.of(saying("one two three").build());
    Recorder r = s.submit(prompt(1, 40), b -> b.maxTokens(3));
    s.advance(Duration.ofMillis(5)); // in the queue
    s.turn();
    s.advance(Duration.ofMillis(70)); // between the two slices
    s.turn();
    s.advance(Duration.ofMillis(11));
    s.turn();
    s.advance(Duration.ofMillis(13));
    s.turn();
    assertThat(r.completed().timings())
        .isEqualTo(
            new Timings(
                Duration.ofMillis(5),
                Duration.ofMillis(70),
                Duration.ofMillis(75),
                Duration.ofMillis(24)));
    s.finish();
  }

  @Test
  void tellsTheSameStoryWithTwoPassesInFlight() {
    String text = "Look: a fox\n</think>\n\nSome words first.\n\n" + CALL;
    UnaryOperator<GenerationRequest.Builder> fields =
        b -> b.tools(List.of(WEATHER)).topLogprobs(1).stopStrings(List.of("never"));
    List<GenerationEvent> one = run(saying(text).build(), true, fields).events();
    List<GenerationEvent> two =
        run(saying(text).maxPassesInFlight(2).build(), true, fields).events();
    // Call ids are invented, so calls are compared by the rest.
    assertThat(two)
        .usingRecursiveComparison()
        .ignoringFieldsMatchingRegexes(".*call\\.id")
        .isEqualTo(one);
  }
}
