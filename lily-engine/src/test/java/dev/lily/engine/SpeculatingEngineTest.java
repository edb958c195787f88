package dev.lily.engine;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.chat.Conversation;
import dev.lily.engine.chat.Message;
import dev.lily.engine.generation.GenerationRequest;
import dev.lily.engine.generation.GenerationResult;
import dev.lily.engine.generation.SpeculationOptions;
import dev.lily.engine.sampling.SamplingOptions;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.Test;

/** A chat that repeats itself, with an engine that looks up what it said. */
class SpeculatingEngineTest {
  private static final Message COUNT = new Message.User("Count from 1 to 20.");

  private static LilyEngine open(SpeculationOptions speculation) {
    return LilyEngine.open(
        EngineOptions.builder(Path.of(Objects.requireNonNull(System.getProperty("lily.nano.dir"))))
            .contextLength(1024)
            .maxSessions(2)
            .speculation(speculation)
            .build());
  }

  /** Three turns with the same question. */
  private static List<GenerationResult> chat(LilyEngine engine, SamplingOptions sampling) {
    List<Message> messages = new ArrayList<>();
    List<GenerationResult> answers = new ArrayList<>();
    for (int turn = 0; turn < 3; turn++) {
      messages.add(COUNT);
      answers.add(
          engine.generate(
              GenerationRequest.builder(new Conversation(messages, List.of()))
                  .thinking(false)
                  .sampling(sampling)
                  .topLogprobs(2)
                  .maxTokens(90)
                  .build()));
      messages.add(new Message.Assistant(answers.getLast().text()));
    }
    return answers;
  }

  private static void assertSame(List<GenerationResult> actual, List<GenerationResult> expected) {
    assertThat(actual)
        .usingRecursiveComparison()
        .ignoringFieldsMatchingRegexes(".*timings.*")
        .isEqualTo(expected);
  }

  @Test
  void answersAreTheSameToTheLastBit() {
    SamplingOptions drawn =
        SamplingOptions.builder().temperature(1.0).topP(0.9).presencePenalty(0.5).seed(7L).build();
    List<GenerationResult> greedy;
    List<GenerationResult> sampled;
    try (LilyEngine plain = open(SpeculationOptions.OFF)) {
      greedy = chat(plain, SamplingOptions.GREEDY);
      sampled = chat(plain, drawn);
      assertThat(plain.stats().speculation()).isEqualTo(new EngineStats.Speculation(0, 0));
    }
    assertThat(greedy.getLast().text()).startsWith("1, 2, 3,").endsWith(" 20");
    SpeculationOptions on = new SpeculationOptions(SpeculationOptions.Mode.PROMPT_LOOKUP, 6);
    try (LilyEngine drafting = open(on)) {
      assertSame(chat(drafting, SamplingOptions.GREEDY), greedy);
      EngineStats stats = drafting.stats();
      assertThat(stats.speculation().drafted())
          .as("how many depends on the time that passes take; the first are free")
          .isPositive()
          .isGreaterThanOrEqualTo(stats.speculation().accepted());
      assertThat(stats.cache().hits()).isPositive();
      assertSame(chat(drafting, drawn), sampled);
      assertThat(drafting.stats().kvPagesUsed()).isZero();
    }
  }
}
