package dev.lily.metal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.lily.engine.EngineOptions;
import dev.lily.engine.LilyEngine;
import dev.lily.engine.backend.BackendException;
import dev.lily.engine.chat.Conversation;
import dev.lily.engine.chat.Message;
import dev.lily.engine.generation.DeviceFailureException;
import dev.lily.engine.generation.GenerationRequest;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.metal.device.DeviceUnavailableException;
import dev.lily.metal.device.MetalDouble;
import dev.lily.metal.device.MetalDoubleExtension;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Every error of the device, seen by who uses the engine: a typed exception, an engine that can be
 * closed, and (the extension sees to it) no object left alive.
 */
@ExtendWith(MetalDoubleExtension.class)
class EngineFailureTest {
  private static final GenerationRequest HELLO =
      GenerationRequest.builder(Conversation.of(new Message.User("Hi")))
          .thinking(false)
          .sampling(SamplingOptions.GREEDY)
          .maxTokens(2)
          .build();

  @BeforeEach
  void useKernels(MetalDouble metal) {
    metal.useKernels();
    metal.set("run", 0); // the answers do not matter
    metal.set("track", 0);
  }

  private static LilyEngine open() {
    Path nano = Path.of(System.getProperty("lily.nano.dir"));
    return LilyEngine.open(
        EngineOptions.builder(nano).backend("metal").contextLength(256).maxSessions(1).build());
  }

  @ParameterizedTest
  @CsvSource({
    "1, '', InternalFailure, true",
    "2, '', Timeout, false",
    "3, '', PageFault, false",
    "4, '', SubmissionsIgnored, false",
    "7, '', NotPermitted, false",
    "8, '', OutOfMemory, true",
    "9, '', InvalidResource, false",
    "11, '', DeviceRemoved, false",
    "12, '', StackOverflow, false",
    "1, kIOGPUCommandBufferCallbackErrorTimeout, Timeout, false",
    "1, kIOGPUCommandBufferCallbackErrorHang, Timeout, false",
    "1, kIOGPUCommandBufferCallbackErrorOutOfMemory, OutOfMemory, true",
    "1, kIOGPUCommandBufferCallbackErrorImpactingInteractivity, ImpactingInteractivity, false",
    "1, kIOGPUCommandBufferCallbackErrorPageFault, PageFault, false",
    "1, kIOGPUCommandBufferCallbackErrorSubmissionsIgnored, SubmissionsIgnored, false",
    "1, kIOGPUCommandBufferCallbackErrorInnocentVictim, InnocentVictim, true",
  })
  void namesWhatBecameOfACommandBuffer(
      long code, String text, String type, boolean isUsable, MetalDouble metal) {
    try (LilyEngine engine = open()) {
      metal.failRun(code, text);
      Throwable cause = failure(engine);
      assertThat(cause).isInstanceOf(BackendException.class);
      assertThat(cause.getClass().getSimpleName()).isEqualTo(type);
      assertThat(engine.stats().lastFailure()).isNotEmpty();
      assertThat(engine.stats().failed()).isEqualTo(1);
      assertThat(engine.stats().alive()).isTrue();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"commandBuffer", "encoder"})
  void namesWhatAPassDidNotGet(String event, MetalDouble metal) {
    try (LilyEngine engine = open()) {
      metal.failNext(event);
      assertThat(failure(engine))
          .isInstanceOf(DeviceUnavailableException.class)
          .hasMessageContaining("gave none");
    }
  }

  private static Throwable failure(LilyEngine engine) {
    Throwable failure = catchThrowable(() -> engine.generate(HELLO));
    assertThat(failure).isInstanceOf(DeviceFailureException.class);
    return failure.getCause();
  }

  @ParameterizedTest
  @CsvSource({
    "allDevices, 0, DeviceUnavailableException",
    "queue, 0, DeviceUnavailableException",
    "residencySet, 0, DeviceUnavailableException",
    "library, 0, ShaderCompilationException",
    "library, 3, ShaderCompilationException",
    "function, 0, ShaderCompilationException",
    "function, 50, ShaderCompilationException",
    "pipeline, 0, ShaderCompilationException",
    "pipeline, 98, ShaderCompilationException",
    "buffer, 0, DeviceMemoryException",
    "buffer, 1, DeviceMemoryException",
    "buffer, 40, DeviceMemoryException",
    "buffer, 90, DeviceMemoryException",
  })
  void namesWhatItDidNotGetWhenItOpens(String event, long after, String type, MetalDouble metal) {
    if (event.equals("allDevices")) {
      metal.fail("defaultDevice", 1, "", 0, ""); // there when asked for, gone when opened
    }
    metal.fail(event, after, "Injected", 7, "injected");
    Throwable failure = catchThrowable(EngineFailureTest::open);
    assertThat(failure).isInstanceOf(BackendException.class);
    assertThat(failure.getClass().getSimpleName()).isEqualTo(type);
    assertThat(failure.getMessage()).isNotBlank();
  }

  @Test
  void saysThatThereIsNoDevice(MetalDouble metal) {
    metal.failNext("defaultDevice");
    metal.failNext("allDevices");
    assertThatExceptionOfType(BackendException.class)
        .isThrownBy(EngineFailureTest::open)
        .withMessageContaining("Back end 'metal' is not available")
        .withMessageContaining("this process sees none");
  }
}
