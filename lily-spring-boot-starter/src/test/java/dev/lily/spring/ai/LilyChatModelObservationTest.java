package dev.lily.spring.ai;

import static io.micrometer.observation.tck.TestObservationRegistryAssert.assertThat;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.lily.engine.generation.InvalidRequestException;
import dev.lily.spring.Nano;
import io.micrometer.common.KeyValue;
import io.micrometer.common.KeyValues;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationHandler;
import io.micrometer.observation.ObservationRegistry;
import io.micrometer.observation.contextpropagation.ObservationThreadLocalAccessor;
import io.micrometer.observation.tck.ObservationContextAssert;
import io.micrometer.observation.tck.TestObservationRegistry;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.Collectors;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.ai.chat.observation.ChatModelMeterObservationHandler;
import org.springframework.ai.chat.prompt.Prompt;
import reactor.test.StepVerifier;

@Timeout(300)
class LilyChatModelObservationTest {

  private static final String NAME = "gen_ai.client.operation";

  private final TestObservationRegistry registry = TestObservationRegistry.create();
  private final LilyChatModel model =
      LilyChatModel.builder(Nano.engine()).observationRegistry(registry).build();

  private static Prompt prompt() {
    return new Prompt(
        "What is 60 - 16?",
        LilyChatOptions.builder().temperature(0.0).thinking(false).maxTokens(50).build());
  }

  private ObservationContextAssert<?> assertObserved() {
    return assertThat(registry)
        .hasObservationWithNameEqualTo(NAME)
        .that()
        .hasBeenStarted()
        .hasBeenStopped()
        .doesNotHaveError()
        .hasContextualNameEqualTo("chat " + Nano.NAME)
        .hasLowCardinalityKeyValue("gen_ai.operation.name", "chat")
        .hasLowCardinalityKeyValue("gen_ai.system", "lily")
        .hasLowCardinalityKeyValue("gen_ai.request.model", Nano.NAME)
        .hasLowCardinalityKeyValue("gen_ai.response.model", Nano.NAME)
        .hasHighCardinalityKeyValue("gen_ai.request.temperature", "0.0")
        .hasHighCardinalityKeyValue("gen_ai.request.max_tokens", "50")
        .hasHighCardinalityKeyValue("gen_ai.response.finish_reasons", "[\"stop\"]")
        .hasHighCardinalityKeyValueWithKey("gen_ai.response.id")
        .hasHighCardinalityKeyValueWithKey("gen_ai.usage.input_tokens")
        .hasHighCardinalityKeyValueWithKey("gen_ai.usage.output_tokens")
        .hasHighCardinalityKeyValueWithKey("gen_ai.usage.total_tokens")
        .hasHighCardinalityKeyValueWithKey("gen_ai.usage.cache_read.input_tokens");
  }

  @Test
  void observesACall() {
    model.call(prompt());
    assertObserved().doesNotHaveHighCardinalityKeyValueWithKey("gen_ai.request.stream");
  }

  private static Set<String> keys(KeyValues values) {
    return values.stream().map(KeyValue::getKey).collect(Collectors.toSet());
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void hasAllKeysOfARequestThatSaysEverything(boolean stream) {
    List<Observation.Context> contexts = new CopyOnWriteArrayList<>();
    registry
        .observationConfig()
        .observationHandler(
            new ObservationHandler<Observation.Context>() {
              @Override
              public void onStop(Observation.Context context) {
                contexts.add(context);
              }

              @Override
              public boolean supportsContext(Observation.Context context) {
                return true;
              }
            });
    Prompt prompt =
        new Prompt(
            "What is 60 - 16?",
            LilyChatOptions.builder()
                .temperature(0.5)
                .topK(5)
                .topP(0.9)
                .frequencyPenalty(0.25)
                .presencePenalty(0.75)
                .stopSequences(List.of("END"))
                .toolCallbacks(Tools.tool("get_weather", "Weather", "{\"type\":\"object\"}"))
                .thinking(false)
                .maxTokens(50)
                .build());
    if (stream) {
      model.stream(prompt).blockLast();
    } else {
      model.call(prompt);
    }
    Observation.Context context = contexts.getFirst();
    assertThat(contexts).hasSize(1);
    assertThat(keys(context.getLowCardinalityKeyValues()))
        .containsExactlyInAnyOrder(
            "gen_ai.operation.name",
            "gen_ai.system",
            "gen_ai.request.model",
            "gen_ai.response.model");
    Set<String> high =
        new HashSet<>(
            Set.of(
                "gen_ai.request.frequency_penalty",
                "gen_ai.request.max_tokens",
                "gen_ai.request.presence_penalty",
                "gen_ai.request.stop_sequences",
                "gen_ai.request.temperature",
                "gen_ai.request.top_k",
                "gen_ai.request.top_p",
                "spring.ai.model.request.tool.names",
                "gen_ai.response.finish_reasons",
                "gen_ai.response.id",
                "gen_ai.usage.input_tokens",
                "gen_ai.usage.output_tokens",
                "gen_ai.usage.total_tokens",
                "gen_ai.usage.cache_read.input_tokens"));
    if (stream) {
      high.add("gen_ai.request.stream");
    }
    assertThat(keys(context.getHighCardinalityKeyValues())).isEqualTo(high);
    assertThat(registry)
        .hasObservationWithNameEqualTo(NAME)
        .that()
        .hasHighCardinalityKeyValue("gen_ai.request.top_k", "5")
        .hasHighCardinalityKeyValue("gen_ai.request.top_p", "0.9")
        .hasHighCardinalityKeyValue("gen_ai.request.frequency_penalty", "0.25")
        .hasHighCardinalityKeyValue("gen_ai.request.presence_penalty", "0.75")
        .hasHighCardinalityKeyValue("gen_ai.request.stop_sequences", "[\"END\"]")
        .hasHighCardinalityKeyValue("spring.ai.model.request.tool.names", "[\"get_weather\"]");
  }

  @RepeatedTest(20)
  void hasStoppedAStreamsObservationWhenTheSubscriberSeesTheEnd() {
    model.stream(prompt()).blockLast();
    assertObserved().hasHighCardinalityKeyValue("gen_ai.request.stream", "true");
  }

  @Test
  void stopsOnceWhenTheSubscriberLeaves() {
    StepVerifier.create(model.stream(prompt()), 2).expectNextCount(2).thenCancel().verify();
    assertThat(registry)
        .hasNumberOfObservationsWithNameEqualTo(NAME, 1)
        .hasObservationWithNameEqualTo(NAME)
        .that()
        .hasBeenStopped()
        .doesNotHaveError();
  }

  @Test
  void recordsAnError() {
    Prompt refused = new Prompt("x", LilyChatOptions.builder().maxTokens(0).build());
    assertThatExceptionOfType(InvalidRequestException.class).isThrownBy(() -> model.call(refused));
    StepVerifier.create(model.stream(refused)).verifyError(InvalidRequestException.class);
    assertThat(registry)
        .hasNumberOfObservationsWithNameEqualTo(NAME, 2)
        .forAllObservationsWithNameEqualTo(NAME, observation -> observation.hasError());
  }

  @Test
  void isAChildOfTheObservationInTheReactorContext() {
    Observation parent = Observation.start("request", registry);
    model.stream(prompt())
        .contextWrite(context -> context.put(ObservationThreadLocalAccessor.KEY, parent))
        .blockLast();
    parent.stop();
    assertThat(registry)
        .hasObservationWithNameEqualTo(NAME)
        .that()
        .hasParentObservationContextSatisfying(
            context -> assertThat(context.getName()).isEqualTo("request"));
  }

  @Test
  void feedsTheTokenUsageMetricOfCallsAndStreams() {
    SimpleMeterRegistry meters = new SimpleMeterRegistry();
    ObservationRegistry metered = ObservationRegistry.create();
    metered.observationConfig().observationHandler(new ChatModelMeterObservationHandler(meters));
    LilyChatModel meteredModel =
        LilyChatModel.builder(Nano.engine()).observationRegistry(metered).build();
    int called = meteredModel.call(prompt()).getMetadata().getUsage().getCompletionTokens();
    meteredModel.stream(prompt()).blockLast();
    assertThat(
            meters
                .get("gen_ai.client.token.usage")
                .tag("gen_ai.token.type", "output")
                .tag("gen_ai.system", "lily")
                .counter()
                .count())
        .isEqualTo(2.0 * called);
  }
}
