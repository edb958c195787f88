package dev.lily.metal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.within;

import dev.lily.engine.EngineOptions;
import dev.lily.engine.LilyEngine;
import dev.lily.engine.backend.KeyValueType;
import dev.lily.engine.backend.UnsupportedKeyValueTypeException;
import dev.lily.engine.chat.Conversation;
import dev.lily.engine.chat.Message;
import dev.lily.engine.generation.FinishReason;
import dev.lily.engine.generation.GenerationRequest;
import dev.lily.engine.generation.GenerationResult;
import dev.lily.engine.generation.RawPrompt;
import dev.lily.engine.generation.TokenLogprob;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.metal.device.MetalDouble;
import dev.lily.metal.device.MetalGpu;
import dev.lily.metal.device.MetalGpuExtension;
import dev.lily.metal.msl.KernelLibraries;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** lily-nano from the request to the answer on Metal. */
@ExtendWith(MetalGpuExtension.class)
class MetalEngineTest {
  private static GenerationRequest.Builder hello() {
    return GenerationRequest.builder(Conversation.of(new Message.User("Hello!"))).thinking(false);
  }

  /** So hot that the seed decides. */
  private static GenerationRequest seeded(long seed) {
    SamplingOptions options =
        SamplingOptions.builder().temperature(8.0).topK(50).topP(1.0).seed(seed).build();
    return hello().sampling(options).minTokens(6).maxTokens(6).build();
  }

  private static LilyEngine open(String backend) {
    return LilyEngine.open(options().backend(backend).build());
  }

  private static EngineOptions.Builder options() {
    Path nano = Path.of(System.getProperty("lily.nano.dir"));
    return EngineOptions.builder(nano).contextLength(256).maxSessions(2);
  }

  private static GenerationRequest turn(Message... messages) {
    return GenerationRequest.builder(Conversation.of(messages))
        .thinking(false)
        .sampling(SamplingOptions.GREEDY)
        .maxTokens(3)
        .topLogprobs(2)
        .build();
  }

  private static GenerationRequest raw(List<Integer> tokens) {
    return GenerationRequest.builder(new RawPrompt.Tokens(tokens))
        .sampling(SamplingOptions.GREEDY)
        .maxTokens(3)
        .topLogprobs(0)
        .build();
  }

  private static List<Float> logprobs(GenerationResult result) {
    return result.logprobs().stream().map(TokenLogprob::logprob).toList();
  }

  private static List<Integer> ids(GenerationResult result) {
    return result.logprobs().stream().map(TokenLogprob::id).toList();
  }

  @Test
  void answersAsTheProcessorDoes(MetalGpu gpu) {
    gpu.useFastKernels();
    GenerationRequest request = hello().sampling(SamplingOptions.GREEDY).build();
    try (LilyEngine engine = open("metal");
        LilyEngine processor = open("cpu")) {
      GenerationResult result = engine.generate(request);
      assertThat(result.text()).isEqualTo(processor.generate(request).text()).startsWith("Hello");
      assertThat(result.finishReason()).isEqualTo(FinishReason.STOP);
    }
  }

  /** Nor does {@code auto} go on to the processor, which could do it but is slower. */
  @ParameterizedTest
  @ValueSource(strings = {"metal", "auto"})
  void refusesKeysAndValuesThatItsKernelsCannotRead(String backend) {
    for (KeyValueType type : List.of(KeyValueType.INT8, KeyValueType.FP32)) {
      EngineOptions options = options().backend(backend).kvCache(type).build();
      assertThatExceptionOfType(UnsupportedKeyValueTypeException.class)
          .isThrownBy(() -> LilyEngine.open(options))
          .satisfies(
              e -> {
                assertThat(e.backend()).isEqualTo("metal");
                assertThat(e.type()).isEqualTo(type);
              })
          .withMessageContaining("lily.kv-cache is '" + type.word() + "'")
          .withMessageContaining("metal keeps keys and values in bf16 only")
          .withMessageContaining("lily.backend");
    }
  }

  @Test
  void answersTheSameThroughTensorOperations(MetalGpu gpu) {
    MetalDouble metal = gpu.requireDouble();
    metal.useFastKernels();
    metal.set("family", 1010);
    GenerationRequest request = hello().sampling(SamplingOptions.GREEDY).build();
    try (LilyEngine engine = open("metal");
        LilyEngine processor = open("cpu")) {
      assertThat(engine.generate(request).text()).isEqualTo(processor.generate(request).text());
    }
  }

  @Test
  void lacksNoBarrierAndHasNoneThatOrdersNothing(MetalGpu gpu) {
    MetalDouble metal = gpu.requireDouble();
    metal.useKernels();
    try (LilyEngine engine = open("metal")) {
      engine.generate(hello().sampling(SamplingOptions.GREEDY).maxTokens(2).build());
    }
    assertThat(metal.get("dispatches")).isPositive();
    if (KernelLibraries.given().isEmpty()) { // a GPU does not tell what its kernels touch
      assertThat(metal.notes()).as("barriers that order nothing").isEmpty();
    }
  }

  @Test
  void drawsTheSameForASeedAndOtherwiseForAnother(MetalGpu gpu) {
    gpu.useFastKernels();
    try (LilyEngine engine = open("metal")) {
      GenerationResult result = engine.generate(seeded(7));
      assertThat(result.usage().completionTokens()).isEqualTo(6);
      assertThat(engine.generate(seeded(7)).text()).isEqualTo(result.text());
      assertThat(engine.generate(seeded(8)).text()).isNotEqualTo(result.text());
    }
  }

  @Test
  void aCachedPromptIsAnsweredAsOneThatWasRead(MetalGpu gpu) {
    gpu.useFastKernels();
    GenerationRequest first = turn(new Message.User("Hello!"));
    GenerationRequest second =
        turn(
            new Message.User("Hello!"),
            new Message.Assistant("Hi."),
            new Message.User("Who are you?"));
    try (LilyEngine warm = open("metal");
        LilyEngine cold = LilyEngine.open(options().backend("metal").cacheBytes(0L).build())) {
      warm.generate(first);
      GenerationResult again = warm.generate(first);
      assertThat(again.usage().cachedTokens()).isPositive();
      assertThat(logprobs(again)).isEqualTo(logprobs(cold.generate(first)));
      GenerationResult next = warm.generate(second);
      assertThat(next.usage().cachedTokens()).isEqualTo(again.usage().cachedTokens());
      assertThat(logprobs(next)).isEqualTo(logprobs(cold.generate(second)));
    }
  }

  @Test
  void aPromptIsContinuedFromDiskAsOneThatWasRead(MetalGpu gpu, @TempDir Path directory) {
    gpu.useFastKernels();
    EngineOptions onDisk = options().backend("metal").cacheDirectory(directory).build();
    List<Integer> prompt = new ArrayList<>();
    for (int i = 0; i < 70; i++) {
      prompt.add(256 + i * i % 500);
    }
    GenerationResult read;
    try (LilyEngine engine = LilyEngine.open(onDisk)) {
      read = engine.generate(raw(prompt));
      assertThat(read.usage().cachedTokens()).isZero();
      prompt.addAll(ids(read));
      prompt.addAll(List.of(300, 301));
    }
    try (LilyEngine engine = LilyEngine.open(onDisk);
        LilyEngine cold = LilyEngine.open(options().backend("metal").cacheBytes(0L).build())) {
      GenerationResult again = engine.generate(raw(prompt.subList(0, 70)));
      assertThat(again.usage().cachedTokens()).isEqualTo(69);
      assertThat(logprobs(again)).isEqualTo(logprobs(read));
      assertThat(engine.stats().disk().hits()).isEqualTo(1);
      GenerationResult onward = engine.generate(raw(prompt));
      assertThat(onward.usage().cachedTokens()).isGreaterThan(69);
      assertThat(ids(onward)).isEqualTo(ids(cold.generate(raw(prompt))));
    }
  }

  /** Its state was made by decode steps, which round otherwise than prefill. */
  @Test
  void aCachedAnswerIsContinuedAsOneThatWasRead(MetalGpu gpu) {
    gpu.useFastKernels();
    try (LilyEngine warm = open("metal");
        LilyEngine cold = LilyEngine.open(options().backend("metal").cacheBytes(0L).build())) {
      List<Integer> tokens = new ArrayList<>();
      for (int id : warm.tokenizer().encode("The capital of France is")) {
        tokens.add(id);
      }
      tokens.addAll(ids(warm.generate(raw(tokens))));
      tokens.addAll(List.of(300, 301));
      GenerationResult onward = warm.generate(raw(tokens));
      assertThat(onward.usage().cachedTokens()).isBetween(tokens.size() - 3, tokens.size() - 2);
      GenerationResult read = cold.generate(raw(tokens));
      assertThat(ids(onward)).isEqualTo(ids(read));
      for (int i = 0; i < 3; i++) {
        assertThat(logprobs(onward).get(i)).isCloseTo(logprobs(read).get(i), within(0.1f));
      }
    }
  }
}
