package dev.lily.spring.actuate;

import dev.lily.engine.generation.Timings;
import dev.lily.engine.generation.Usage;
import dev.lily.spring.AnswerRecorder;
import io.micrometer.core.instrument.DistributionSummary;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;

/**
 * Meters of single answers: timers {@code lily.queue.time} and {@code lily.time.to.first.token},
 * which includes it, and summary {@code lily.tokens.per.second}, the speed between the first and
 * the last token.
 */
public final class MeteredAnswerRecorder implements AnswerRecorder {

  private static final double NANOS_PER_SECOND = 1e9;

  private final Timer queued;
  private final Timer firstToken;
  private final DistributionSummary tokensPerSecond;

  public MeteredAnswerRecorder(MeterRegistry registry) {
    queued =
        Timer.builder("lily.queue.time")
            .description("From submission to a place among the sessions")
            .register(registry);
    firstToken =
        Timer.builder("lily.time.to.first.token")
            .description("From submission to the first generated token")
            .register(registry);
    tokensPerSecond =
        DistributionSummary.builder("lily.tokens.per.second")
            .description("Generated tokens a second after the first, per answer")
            .register(registry);
  }

  /** Answers without a token count nowhere; those with only one have no speed. */
  @Override
  public void record(Usage usage, Timings timings) {
    if (usage.completionTokens() == 0) {
      return;
    }
    queued.record(timings.queued());
    firstToken.record(timings.firstToken());
    if (usage.completionTokens() > 1 && timings.decode().isPositive()) {
      tokensPerSecond.record(
          (usage.completionTokens() - 1) * NANOS_PER_SECOND / timings.decode().toNanos());
    }
  }
}
