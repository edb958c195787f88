package dev.lily.engine;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.chat.Conversation;
import dev.lily.engine.chat.Message;
import dev.lily.engine.generation.FinishReason;
import dev.lily.engine.generation.GenerationHandle;
import dev.lily.engine.generation.GenerationRequest;
import dev.lily.engine.generation.GenerationResult;
import dev.lily.engine.generation.ResultCollector;
import dev.lily.engine.sampling.SamplingOptions;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The test model through the whole engine: what runs beside an answer does not change it. */
class ConcurrentAnswersTest {
  private static final int REQUESTS = 8;
  private static final int MAX_TOKENS = 12;

  private static LilyEngine engine;

  @BeforeAll
  static void open() {
    Path nano = Path.of(Objects.requireNonNull(System.getProperty("lily.nano.dir")));
    engine =
        LilyEngine.open(
            EngineOptions.builder(nano)
                .contextLength(512)
                .maxSessions(4)
                .prefillChunk(16)
                .maxStepTime(Duration.ofMillis(20)) // so that prompts are cut by time as well
                .build());
  }

  @AfterAll
  static void close() {
    engine.close();
    EngineStats stats = engine.stats();
    assertThat(stats.kvPagesUsed()).isZero();
    assertThat(stats.failed()).isZero();
    assertThat(stats.submitted()).isEqualTo(stats.completed() + stats.cancelled());
  }

  private static List<GenerationRequest> requests(SamplingOptions sampling) {
    List<GenerationRequest> requests = new ArrayList<>();
    for (int i = 0; i < REQUESTS; i++) {
      String question = "Reply with the word " + "fox ".repeat(1 + 3 * i) + i + ".";
      requests.add(
          GenerationRequest.builder(Conversation.of(new Message.User(question)))
              .thinking(i % 2 == 0)
              .sampling(sampling)
              .maxTokens(MAX_TOKENS)
              .topLogprobs(0)
              .build());
    }
    return requests;
  }

  private static List<GenerationResult> together(List<GenerationRequest> requests)
      throws InterruptedException {
    List<ResultCollector> collectors = new ArrayList<>();
    List<GenerationHandle> handles = new ArrayList<>();
    for (GenerationRequest request : requests) {
      collectors.add(new ResultCollector());
      handles.add(engine.submit(request, collectors.getLast()));
    }
    for (GenerationHandle handle : handles) {
      handle.await();
    }
    return collectors.stream().map(ResultCollector::result).toList();
  }

  private static void assertSameAsAlone(SamplingOptions sampling) throws InterruptedException {
    List<GenerationRequest> requests = requests(sampling);
    List<GenerationResult> together = together(requests);
    for (int i = 0; i < REQUESTS; i++) {
      GenerationResult alone = engine.generate(requests.get(i));
      GenerationResult shared = together.get(i);
      assertThat(shared.text()).isEqualTo(alone.text());
      assertThat(shared.reasoning()).isEqualTo(alone.reasoning());
      assertThat(shared.usage())
          .usingRecursiveComparison()
          .ignoringFields("cachedTokens")
          .isEqualTo(alone.usage());
      assertThat(shared.finishReason()).isEqualTo(alone.finishReason());
      assertThat(shared.logprobs())
          .usingRecursiveComparison()
          .as("bit for bit, however the prompt was cut")
          .isEqualTo(alone.logprobs());
    }
  }

  @Test
  void greedyAnswersAreTheSameTogetherAndAlone() throws InterruptedException {
    assertSameAsAlone(SamplingOptions.GREEDY);
  }

  @Test
  void seededAnswersAreTheSameTogetherAndAlone() throws InterruptedException {
    assertSameAsAlone(SamplingOptions.builder().temperature(1.5).topP(1.0).seed(42L).build());
  }

  @Test
  void answersWithoutASeedDiffer() throws InterruptedException {
    GenerationRequest request =
        GenerationRequest.builder(Conversation.of(new Message.User("Tell me a story about a fox.")))
            .thinking(false)
            .sampling(SamplingOptions.builder().temperature(1.5).topP(1.0).topK(0).build())
            .maxTokens(4 * MAX_TOKENS)
            .build();
    List<GenerationResult> answers = together(Collections.nCopies(REQUESTS, request));
    assertThat(answers.stream().map(GenerationResult::text).distinct().count()).isGreaterThan(1);
  }

  @Test
  void aSingleTokenIsALengthEnd() {
    GenerationResult result =
        engine.generate(
            GenerationRequest.builder(Conversation.of(new Message.User("Hello")))
                .sampling(SamplingOptions.GREEDY)
                .maxTokens(1)
                .build());
    assertThat(result.finishReason()).isEqualTo(FinishReason.LENGTH);
    assertThat(result.usage().completionTokens()).isEqualTo(1);
    assertThat(result.usage().reasoningTokens()).isEqualTo(1);
  }
}
