package dev.lily.engine.sampling;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class PenaltiesTest {
  @Test
  void presenceIsTakenOnceAndFromGeneratedTokensOnly() {
    SamplingOptions options = SamplingOptions.builder().presencePenalty(1.5).build();
    assertThat(penalized(options, new int[] {3}, 0, 0, 1)).containsExactly(2.5f, 0.5f, 0, -4);
  }

  @Test
  void frequencyGrowsWithTheCountOfGeneratedTokens() {
    SamplingOptions options = SamplingOptions.builder().frequencyPenalty(0.5).build();
    assertThat(penalized(options, new int[] {3, 0}, 0, 0, 0, 1)).containsExactly(2.5f, 1.5f, 0, -4);
  }

  @Test
  void negativePenaltiesEncourage() {
    SamplingOptions options =
        SamplingOptions.builder().presencePenalty(-2.0).frequencyPenalty(-1.0).build();
    assertThat(penalized(options, new int[0], 1, 1)).containsExactly(4, 6, 0, -4);
  }

  @Test
  void repetitionScalesTowardsUnlikelyOnceForPromptAndGeneratedTokens() {
    SamplingOptions options = SamplingOptions.builder().repetitionPenalty(2.0).build();
    assertThat(penalized(options, new int[] {3, 3, 0}, 0, 1, 1)).containsExactly(2, 1, 0, -8);
  }

  @Test
  void repetitionComesBeforeTheOthers() {
    SamplingOptions options =
        SamplingOptions.builder()
            .repetitionPenalty(2.0)
            .presencePenalty(1.0)
            .frequencyPenalty(0.25)
            .build();
    assertThat(penalized(options, new int[] {3}, 0, 0)).containsExactly(0.5f, 2, 0, -8);
  }

  @Test
  void leavesMaskedTokensMasked() {
    SamplerState state = new SamplerState(4);
    SamplingOptions options =
        SamplingOptions.builder().repetitionPenalty(1e-30).presencePenalty(-2.0).build();
    state.begin(SamplingParameters.of(options, 0, -1), new int[] {0});
    state.accept(0);
    float[] logits = {Float.NEGATIVE_INFINITY, 0, 0, 0};
    Penalties.apply(state, logits);
    assertThat(logits[0]).isEqualTo(Float.NEGATIVE_INFINITY);
  }

  private static float[] penalized(SamplingOptions options, int[] prompt, int... generated) {
    SamplerState state = new SamplerState(4);
    state.begin(SamplingParameters.of(options, 0, -1), prompt);
    for (int token : generated) {
      state.accept(token);
    }
    float[] logits = {4, 2, 0, -4};
    Penalties.apply(state, logits);
    return logits;
  }
}
