package dev.lily.engine.generation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.lily.engine.chat.Conversation;
import dev.lily.engine.chat.Message;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;

class GenerationRequestTest {

  private static GenerationRequest build(UnaryOperator<GenerationRequest.Builder> fields) {
    return fields.apply(GenerationRequest.builder(Conversation.of(new Message.User("hi")))).build();
  }

  private static void assertRefused(
      String parameter, UnaryOperator<GenerationRequest.Builder> fields) {
    assertThatThrownBy(() -> build(fields))
        .isInstanceOfSatisfying(
            InvalidRequestException.class, e -> assertThat(e.parameter()).isEqualTo(parameter));
  }

  @Test
  void refusesValuesOutsideTheirRanges() {
    assertRefused("maxTokens", r -> r.maxTokens(0));
    assertRefused("maxTokens", r -> r.maxTokens(-1));
    assertRefused("minTokens", r -> r.minTokens(-1));
    assertRefused("minTokens", r -> r.minTokens(6).maxTokens(5));
    assertRefused("topLogprobs", r -> r.topLogprobs(21));
    assertRefused("topLogprobs", r -> r.topLogprobs(-1));
    assertRefused("timeout", r -> r.timeout(Duration.ZERO));
    assertRefused("stopStrings", r -> r.stopStrings(List.of("a", "")));
    assertRefused("stopStrings", r -> r.stopStrings(Collections.nCopies(17, "a")));
  }

  @Test
  void acceptsTheEdgesOfTheRanges() {
    GenerationRequest request =
        build(
            r ->
                r.maxTokens(1)
                    .minTokens(1)
                    .topLogprobs(20)
                    .timeout(Duration.ofNanos(1))
                    .stopStrings(Collections.nCopies(16, "a")));
    assertThat(request.maxTokens()).isEqualTo(1);
    assertThat(request.stopStrings()).hasSize(16);
  }

  @Test
  void refusesHalfACharacterAsStopString() {
    assertThat(build(r -> r.stopStrings(List.of("\ud83d\ude00"))).stopStrings()).hasSize(1);
    assertRefused("stopStrings", r -> r.stopStrings(List.of("\ude00")));
    assertRefused("stopStrings", r -> r.stopStrings(List.of("a\ud83d")));
  }
}
