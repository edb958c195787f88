package dev.lily.spring.openai;

import static dev.lily.spring.openai.ScriptedEngine.answer;
import static dev.lily.spring.openai.ScriptedEngine.call;
import static dev.lily.spring.openai.ScriptedEngine.completed;
import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.generation.FinishReason;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.JsonNode;

/** {@code parallel_tool_calls: false}. */
class SingleCallTest extends EndpointTest {
  private static final String FIELDS =
      "'parallel_tool_calls':false,'messages':[{'role':'user','content':'hi'}]}";

  @Test
  void endsWithTheFirstCallAndStopsTheEngine() throws Exception {
    EndpointServer server =
        serve(
            answer("Let me see."), call("call_a", "f", "{}"), answer("And"), call("b", "g", "{}"));
    // The script has no end: only the cancellation ends it.
    JsonNode choice = server.answer("{" + FIELDS).path("choices").get(0);
    assertThat(choice.path("finish_reason").stringValue()).isEqualTo("tool_calls");
    assertThat(choice.path("message").path("content").stringValue()).isEqualTo("Let me see.");
    assertThat(choice.path("message").path("tool_calls").valueStream())
        .extracting(call -> call.path("id").stringValue())
        .containsExactly("call_a");
    SentEvents events = server.events("{'stream':true," + FIELDS);
    assertThat(events.done()).isTrue();
    assertThat(events.assembled()).containsExactly(choice);
    for (ScriptedEngine.Session session : server.engine().sessions) {
      session.await();
      assertThat(session.cancelled).isTrue();
    }
  }

  @Test
  void changesNothingWithoutACall() {
    EndpointServer server = serve(answer("No."), completed(FinishReason.STOP));
    JsonNode choice = server.answer("{" + FIELDS).path("choices").get(0);
    assertThat(choice.path("finish_reason").stringValue()).isEqualTo("stop");
    assertThat(server.engine().sessions.getFirst().cancelled).isFalse();
  }

  @Test
  void countsTheLimitThatComesAfterTheCallAsItsEnd() {
    EndpointServer server = serve(call("call_a", "f", "{}"), completed(FinishReason.LENGTH));
    JsonNode choice = server.answer("{" + FIELDS).path("choices").get(0);
    assertThat(choice.path("finish_reason").stringValue()).isEqualTo("tool_calls");
  }

  @Test
  void cutsEachChoiceForItself() {
    EndpointServer server = serve(call("call_a", "f", "{}"), call("call_b", "f", "{}"));
    JsonNode choices = server.answer("{'n':3," + FIELDS).path("choices");
    assertThat(choices.valueStream())
        .hasSize(3)
        .allMatch(choice -> choice.path("message").path("tool_calls").size() == 1);
  }
}
