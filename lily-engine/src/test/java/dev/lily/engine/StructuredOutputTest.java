package dev.lily.engine;

import static org.assertj.core.api.Assertions.assertThat;

import com.networknt.schema.Schema;
import com.networknt.schema.SchemaRegistry;
import com.networknt.schema.SpecificationVersion;
import dev.lily.engine.chat.Conversation;
import dev.lily.engine.chat.Message;
import dev.lily.engine.constraint.OutputConstraint;
import dev.lily.engine.generation.FinishReason;
import dev.lily.engine.generation.GenerationRequest;
import dev.lily.engine.generation.GenerationResult;
import dev.lily.engine.sampling.SamplingOptions;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import tools.jackson.core.StreamReadFeature;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/**
 * Answers of the test model at a temperature at which it writes nonsense, checked by a validator
 * that shares no code with the engine. {@code -Dlily.structured.schemas=1000} for more of them.
 */
class StructuredOutputTest {
  private static final int SCHEMAS = Integer.getInteger("lily.structured.schemas", 100);
  private static final JsonMapper STRICT =
      JsonMapper.builder()
          .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
          .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
          .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
          .build();

  private static LilyEngine engine;

  @BeforeAll
  static void open() {
    engine =
        LilyEngine.open(
            EngineOptions.builder(Path.of(System.getProperty("lily.nano.dir"))).build());
  }

  @AfterAll
  static void close() {
    engine.close();
  }

  private static GenerationRequest.Builder ask(String text, long seed) {
    return GenerationRequest.builder(Conversation.of(new Message.User(text)))
        .thinking(false)
        .sampling(SamplingOptions.builder().temperature(1.5).topP(1.0).topK(0).seed(seed).build());
  }

  @Test
  void answersAreValidWhateverTheSchema() throws Exception {
    List<Future<String>> answers = new ArrayList<>();
    try (ExecutorService callers = Executors.newFixedThreadPool(4)) {
      for (int i = 0; i < SCHEMAS; i++) {
        long seed = i;
        answers.add(callers.submit(() -> problem(seed)));
      }
    }
    List<String> problems = new ArrayList<>();
    for (Future<String> answer : answers) {
      if (!answer.get().isEmpty()) {
        problems.add(answer.get());
      }
    }
    assertThat(problems).isEmpty();
  }

  /** What is wrong with the answer for a schema; empty if nothing is. */
  private static String problem(long seed) {
    JsonNode schema = RandomSchemas.schema(seed);
    GenerationResult result;
    try {
      result =
          engine.generate(
              ask("Give me an example.", seed)
                  .maxTokens(2000)
                  .output(new OutputConstraint.JsonSchema(schema))
                  .build());
    } catch (RuntimeException e) {
      return seed + ": " + schema + " " + e;
    }
    if (result.finishReason() != FinishReason.STOP) {
      return seed + ": " + schema + " " + result.finishReason() + " after " + result.text();
    }
    try {
      JsonNode document = STRICT.readTree(result.text());
      Schema validator =
          SchemaRegistry.withDefaultDialect(SpecificationVersion.DRAFT_2020_12)
              .getSchema(STRICT.readTree(schema.toString()));
      var errors =
          validator.validate(
              document, context -> context.executionConfig(c -> c.formatAssertionsEnabled(true)));
      return errors.isEmpty() ? "" : seed + ": " + schema + " " + document + " " + errors;
    } catch (RuntimeException e) {
      return seed + ": " + schema + " " + result.text() + " " + e;
    }
  }
}
