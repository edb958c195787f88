package dev.lily.engine.generation;

import static dev.lily.engine.generation.ManualScheduler.model;
import static dev.lily.engine.generation.ManualScheduler.prompt;
import static dev.lily.engine.generation.ManualScheduler.saying;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.lily.engine.chat.Conversation;
import dev.lily.engine.chat.Message;
import dev.lily.engine.chat.ResponsePart;
import dev.lily.engine.chat.ToolCall;
import dev.lily.engine.chat.ToolDefinition;
import dev.lily.engine.constraint.OutputConstraint;
import dev.lily.engine.model.ScriptedModel;
import dev.lily.engine.model.ScriptedModel.Rows;
import dev.lily.engine.model.ScriptedModel.Script;
import java.util.List;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

/** Answers that follow a constraint; the script says what the model would like to say. */
class ConstrainedAnswerTest {
  private static final AnswerConstraints CONSTRAINTS =
      new AnswerConstraints(Nano.TOKENIZER, Nano.TOKENIZER.vocabularySize(), new int[] {Nano.END});
  private static final String CALL =
      "<tool_call>\n<function=weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>";

  private static ToolDefinition weather(boolean strict) {
    ObjectNode parameters =
        (ObjectNode)
            JsonMapper.builder()
                .build()
                .readTree(
                    "{\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\"}},\"required\":[\"city\"]}");
    ToolDefinition tool = ToolDefinition.of("weather", "Weather of a city", parameters);
    ((ObjectNode) tool.json().path("function")).put("strict", strict);
    return tool;
  }

  private static OutputConstraint city() {
    return OutputConstraint.JsonSchema.parse(
        "{\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\"}},\"required\":[\"city\"]}");
  }

  private static Recorder run(
      ScriptedModel model, boolean thinking, UnaryOperator<GenerationRequest.Builder> fields) {
    ManualScheduler s = ManualScheduler.of(model);
    Recorder recorder = submit(s, thinking, fields);
    s.finish();
    return recorder;
  }

  private static Recorder submit(
      ManualScheduler s, boolean thinking, UnaryOperator<GenerationRequest.Builder> fields) {
    GenerationRequest request = request(fields);
    Recorder recorder = new Recorder();
    return recorder.submittedAs(
        s.scheduler()
            .submit(
                request,
                new EncodedPrompt(prompt(1, 3), thinking),
                ManualScheduler.GREEDY,
                CONSTRAINTS.of(request, thinking),
                recorder));
  }

  private static List<ToolCall> calls(Recorder recorder) {
    return recorder.parts(ResponsePart.CalledTool.class).stream().map(p -> p.call()).toList();
  }

  private static GenerationRequest request(UnaryOperator<GenerationRequest.Builder> fields) {
    return fields.apply(GenerationRequest.builder(Conversation.of(new Message.User("x")))).build();
  }

  @Test
  void aModelThatDoesRightIsNotDisturbed() {
    Recorder r = run(saying("{\"city\": \"Oslo\"}").build(), false, b -> b.output(city()));
    assertThat(r.text()).isEqualTo("{\"city\": \"Oslo\"}");
    assertThat(r.completed().reason()).isEqualTo(FinishReason.STOP);
  }

  @Test
  void aModelThatDoesWrongIsKeptOnTheWay() {
    Recorder r =
        run(
            saying("Sure! Here it is.").build(),
            false,
            b -> b.output(new OutputConstraint.Choice(List.of("yes", "no"))));
    assertThat(r.text()).isIn("yes", "no");
    assertThat(r.completed().reason()).isEqualTo(FinishReason.STOP);
  }

  @Test
  void endsWithoutAnEndTokenWhereNothingCanFollow() {
    Recorder r =
        run(saying("no").build(), false, b -> b.output(new OutputConstraint.Choice(List.of("no"))));
    assertThat(r.completed().usage().completionTokens()).isEqualTo(Nano.ids("no").length);
  }

  @Test
  void mustNotEndBeforeItIsComplete() {
    Recorder r =
        run(model(Script.saying(Nano.END)).build(), false, b -> b.output(city()).maxTokens(200));
    assertThat(r.text()).startsWith("{\"city\":");
  }

  @Test
  void theTokenLimitBreaksItOff() {
    Recorder r =
        run(saying("{\"city\": \"Oslo\"}").build(), false, b -> b.output(city()).maxTokens(2));
    assertThat(r.completed().reason()).isEqualTo(FinishReason.LENGTH);
    assertThat(r.text()).isNotEmpty();
    assertThat("{\"city\": \"Oslo\"}").startsWith(r.text());
  }

  @Test
  void reasoningIsFreeAndTheConstraintBindsTheAnswer() {
    Recorder r =
        run(
            saying("A city, {maybe}.\n</think>\n\n{\"city\": \"Oslo\"}").build(),
            true,
            b -> b.output(city()));
    assertThat(r.reasoning()).isEqualTo("A city, {maybe}.");
    assertThat(r.text()).isEqualTo("{\"city\": \"Oslo\"}");
  }

  @Test
  void aToolMayBeCalledInsteadOfTheConstrainedAnswer() {
    Recorder r =
        run(saying(CALL).build(), false, b -> b.output(city()).tools(List.of(weather(false))));
    assertThat(r.completed().reason()).isEqualTo(FinishReason.TOOL_CALLS);
    assertThat(calls(r)).singleElement().satisfies(c -> assertThat(c.name()).isEqualTo("weather"));
  }

  @Test
  void whatLooksLikeACallInsideTheAnswerIsText() {
    String answer = "{\"city\": \"<tool_call><function=weather></function></tool_call>\"}";
    // Byte by byte, because as a token the mark would begin a call.
    ScriptedModel model = model(Script.saying(spelled(answer))).build();
    Recorder r = run(model, false, b -> b.output(city()).tools(List.of(weather(false))));
    assertThat(r.text()).isEqualTo(answer);
    assertThat(r.completed().reason()).isEqualTo(FinishReason.STOP);
  }

  private static int[] spelled(String ascii) {
    int[] ids = new int[ascii.length() + 1];
    for (int i = 0; i < ascii.length(); i++) {
      ids[i] = Nano.ids(ascii.substring(i, i + 1))[0];
    }
    ids[ascii.length()] = Nano.END;
    return ids;
  }

  @Test
  void aRequiredToolIsCalled() {
    Recorder r =
        run(
            saying("I would rather talk.").build(),
            false,
            b -> b.tools(List.of(weather(false))).toolChoice(ToolChoice.REQUIRED).maxTokens(300));
    assertThat(r.text()).isEmpty();
    assertThat(r.completed().reason()).isIn(FinishReason.TOOL_CALLS, FinishReason.LENGTH);
    Recorder good =
        run(
            saying(CALL).build(),
            false,
            b ->
                b.tools(List.of(weather(false)))
                    .toolChoice(new ToolChoice.Named("weather"))
                    .parallelToolCalls(false));
    assertThat(calls(good))
        .singleElement()
        .satisfies(c -> assertThat(c.arguments().path("city").stringValue()).isEqualTo("Paris"));
    assertThat(good.completed().reason()).isEqualTo(FinishReason.TOOL_CALLS);
  }

  @Test
  void aRequiredToolIsCalledBehindTheReasoning() {
    Recorder r =
        run(
            saying("Paris, I guess.\n</think>\n\n" + CALL).build(),
            true,
            b ->
                b.tools(List.of(weather(false)))
                    .toolChoice(ToolChoice.REQUIRED)
                    .parallelToolCalls(false));
    assertThat(r.reasoning()).isEqualTo("Paris, I guess.");
    assertThat(r.text()).isEmpty();
    assertThat(calls(r)).singleElement().satisfies(c -> assertThat(c.name()).isEqualTo("weather"));
    assertThat(r.completed().reason()).isEqualTo(FinishReason.TOOL_CALLS);
  }

  @Test
  void aStrictToolMayBeCalledAfterText() {
    Recorder r =
        run(saying("Let me look.\n\n" + CALL).build(), false, b -> b.tools(List.of(weather(true))));
    assertThat(r.text()).isEqualTo("Let me look.");
    assertThat(r.completed().reason()).isEqualTo(FinishReason.TOOL_CALLS);
  }

  @Test
  void refusesOnTheCallersThread() {
    assertThatThrownBy(
            () ->
                CONSTRAINTS.of(
                    request(
                        b -> b.output(OutputConstraint.JsonSchema.parse("{\"uniqueItems\":true}"))),
                    false))
        .isInstanceOfSatisfying(
            InvalidRequestException.class, e -> assertThat(e.parameter()).isEqualTo("output"))
        .hasMessageContaining("/uniqueItems");
    assertThatThrownBy(() -> CONSTRAINTS.of(request(b -> b.output(city()).minTokens(3)), false))
        .isInstanceOfSatisfying(
            InvalidRequestException.class, e -> assertThat(e.parameter()).isEqualTo("minTokens"));
    assertThatThrownBy(() -> CONSTRAINTS.of(request(b -> b.toolChoice(ToolChoice.REQUIRED)), false))
        .isInstanceOfSatisfying(
            InvalidRequestException.class, e -> assertThat(e.parameter()).isEqualTo("toolChoice"));
    assertThatThrownBy(
            () ->
                CONSTRAINTS.of(
                    request(
                        b ->
                            b.tools(List.of(weather(false)))
                                .toolChoice(new ToolChoice.Named("nope"))),
                    false))
        .isInstanceOfSatisfying(
            InvalidRequestException.class, e -> assertThat(e.parameter()).isEqualTo("toolChoice"));
  }

  @Test
  void constrainsNothingWhereNothingIsAskedFor() {
    assertThat(CONSTRAINTS.of(request(b -> b.tools(List.of(weather(false)))), false)).isNull();
    assertThat(CONSTRAINTS.of(request(b -> b), true)).isNull();
  }

  @Test
  void equalRequestsShareACompiledForm() {
    assertThat(CONSTRAINTS.of(request(b -> b.output(city())), false).grammar())
        .isSameAs(CONSTRAINTS.of(request(b -> b.output(city())), false).grammar());
  }

  @Test
  void runsOnePassDeepWhileOthersRunTwoDeep() {
    ScriptedModel model = saying("{\"city\": \"Oslo\"}").maxPassesInFlight(2).build();
    ManualScheduler s = ManualScheduler.of(model);
    Recorder constrained = submit(s, false, b -> b.output(city()));
    Recorder free = submit(s, false, b -> b);
    s.finish();
    assertThat(constrained.text()).isEqualTo(free.text());
    long together = s.steps().stream().filter(step -> step.size() == 2).count();
    long alone = s.steps().stream().filter(step -> decodes(step) == 1).count();
    assertThat(together).isPositive();
    assertThat(alone).isPositive();
  }

  private static long decodes(List<Rows> step) {
    return step.stream().filter(Rows::decode).count();
  }
}
