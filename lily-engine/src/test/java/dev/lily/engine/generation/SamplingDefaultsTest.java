package dev.lily.engine.generation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.lily.engine.chat.Conversation;
import dev.lily.engine.chat.Message;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.engine.sampling.SamplingParameters;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class SamplingDefaultsTest {
  private static final SamplingOptions CHECKPOINT =
      SamplingOptions.builder().temperature(0.6).topK(30).topP(0.5).minP(0.1).build();

  private final AtomicLong seeds = new AtomicLong(100);

  private SamplingParameters complete(
      SamplingOptions request, SamplingOptions application, boolean thinking) {
    return new SamplingDefaults(application, CHECKPOINT, 1000, seeds::getAndIncrement)
        .complete(request(request, null), thinking);
  }

  private static GenerationRequest request(SamplingOptions options, Integer topLogprobs) {
    return GenerationRequest.builder(Conversation.of(new Message.User("hi")))
        .sampling(options)
        .topLogprobs(topLogprobs)
        .build();
  }

  @Test
  void takesTheThinkingProfileAndWhatItLeavesUnsaidFromTheCheckpoint() {
    SamplingParameters p = complete(SamplingOptions.NONE, SamplingOptions.NONE, true);
    assertThat(p.temperature()).isEqualTo(1f);
    assertThat(p.topP()).isEqualTo(0.95f);
    assertThat(p.topK()).isEqualTo(20);
    assertThat(p.minP()).isEqualTo(0.1f);
    assertThat(p.presencePenalty()).isZero();
    assertThat(p.repetitionPenalty()).isEqualTo(1f);
  }

  @Test
  void takesTheProfileOfDirectAnswers() {
    SamplingParameters p = complete(SamplingOptions.NONE, SamplingOptions.NONE, false);
    assertThat(p.temperature()).isEqualTo(0.7f);
    assertThat(p.topP()).isEqualTo(0.8f);
    assertThat(p.topK()).isEqualTo(20);
    assertThat(p.presencePenalty()).isEqualTo(1.5f);
  }

  @Test
  void putsTheApplicationOverTheProfileAndTheRequestOverBoth() {
    SamplingOptions application = SamplingOptions.builder().temperature(0.3).topK(5).build();
    SamplingOptions request = SamplingOptions.builder().topK(0).build();
    SamplingParameters p = complete(request, application, true);
    assertThat(p.temperature()).isEqualTo(0.3f);
    assertThat(p.topK()).isZero();
    assertThat(p.topP()).isEqualTo(0.95f);
  }

  @Test
  void leavesAGreedyRequestWithoutAnyPenalty() {
    SamplingOptions likeliest = SamplingOptions.builder().topK(1).build();
    for (SamplingOptions greedy : new SamplingOptions[] {SamplingOptions.GREEDY, likeliest}) {
      SamplingParameters asked = complete(greedy, SamplingOptions.NONE, false);
      assertThat(asked.isGreedy()).isTrue();
      assertThat(asked.presencePenalty()).isZero();
      assertThat(asked.minP()).isZero();
      assertThat(complete(SamplingOptions.NONE, greedy, false).presencePenalty()).isZero();
    }
    SamplingOptions penalised =
        SamplingOptions.builder().temperature(0.0).presencePenalty(0.5).build();
    assertThat(complete(penalised, SamplingOptions.NONE, false).presencePenalty()).isEqualTo(0.5f);
  }

  @Test
  void drawsASeedForEachRequestThatNamesNone() {
    assertThat(complete(SamplingOptions.NONE, SamplingOptions.NONE, true).seed()).isEqualTo(100);
    assertThat(complete(SamplingOptions.NONE, SamplingOptions.NONE, true).seed()).isEqualTo(101);
    SamplingOptions seeded = SamplingOptions.builder().seed(42L).build();
    assertThat(complete(seeded, SamplingOptions.NONE, true).seed()).isEqualTo(42);
  }

  @Test
  void asksForLogprobsOnlyWhenTheRequestDoes() {
    SamplingDefaults defaults =
        new SamplingDefaults(SamplingOptions.NONE, CHECKPOINT, 1000, () -> 1);
    assertThat(defaults.complete(request(SamplingOptions.NONE, null), true).topLogprobs())
        .isEqualTo(-1);
    assertThat(defaults.complete(request(SamplingOptions.NONE, 0), true).topLogprobs()).isZero();
    assertThat(defaults.complete(request(SamplingOptions.NONE, 20), true).topLogprobs())
        .isEqualTo(20);
  }

  @Test
  void refusesABiasForATokenTheModelDoesNotHave() {
    SamplingOptions last = SamplingOptions.builder().logitBias(Map.of(5, 1.0, 999, 1.0)).build();
    assertThat(complete(last, SamplingOptions.NONE, true).biasTokens()).containsExactly(5, 999);
    SamplingOptions beyond = SamplingOptions.builder().logitBias(Map.of(5, 1.0, 1000, 1.0)).build();
    assertThatThrownBy(() -> complete(beyond, SamplingOptions.NONE, true))
        .isInstanceOfSatisfying(
            InvalidRequestException.class, e -> assertThat(e.parameter()).isEqualTo("logitBias"))
        .hasMessageContaining("1000");
  }
}
