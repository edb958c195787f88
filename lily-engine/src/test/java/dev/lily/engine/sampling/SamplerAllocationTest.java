package dev.lily.engine.sampling;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

class SamplerAllocationTest {
  private static Stream<Arguments> cases() {
    return SamplerTest.optionSets().stream()
        .flatMap(
            options ->
                Stream.of(Arguments.of(options, 4098, 20), Arguments.of(options, 248_320, -1)));
  }

  @ParameterizedTest
  @MethodSource("cases")
  void allocatesNothingPerToken(SamplingOptions options, int vocabularySize, int topLogprobs) {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    Sampler sampler = new Sampler(vocabularySize);
    SamplerState state = new SamplerState(vocabularySize);
    SampledToken out = new SampledToken();
    float[] logits = SamplerTest.randomLogits(vocabularySize, 5);
    long[] allowed = new long[(vocabularySize + 63) / 64];
    Arrays.fill(allowed, 0x7777777777777777L);
    int[] prompt = {1, 2, 3, 5, 8};
    SamplingParameters parameters = SamplingParameters.of(options, 3, topLogprobs);
    run(sampler, state, out, logits, allowed, prompt, parameters, 30);
    threads.getCurrentThreadAllocatedBytes();

    long before = threads.getCurrentThreadAllocatedBytes();
    run(sampler, state, out, logits, allowed, prompt, parameters, 20);
    long allocated = threads.getCurrentThreadAllocatedBytes() - before;

    assertThat(allocated).isZero();
    assertThat(state.step()).isEqualTo(20);
  }

  private static void run(
      Sampler sampler,
      SamplerState state,
      SampledToken out,
      float[] logits,
      long[] allowed,
      int[] prompt,
      SamplingParameters parameters,
      int steps) {
    state.begin(parameters, prompt);
    for (int step = 0; step < steps; step++) {
      state.mask(step % 2 == 0 ? allowed : null);
      sampler.sample(logits, 0, state, out);
    }
  }
}
