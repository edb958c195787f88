package dev.lily.metal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.PageTable;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.PendingPass;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.contract.TinyModel;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.engine.sampling.SamplingParameters;
import dev.lily.metal.device.CommandBufferException;
import dev.lily.metal.device.DeviceUnavailableException;
import dev.lily.metal.device.MetalDouble;
import dev.lily.metal.device.MetalDoubleExtension;
import java.time.Duration;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A prefill that would keep the GPU for too long goes to it in several command buffers. */
@ExtendWith(MetalDoubleExtension.class)
class TimeBoxTest {
  private static final int[] PROMPT = IntStream.range(0, 30).map(i -> i * 7 % 100).toArray();

  private final PageTable pages = new PageTable();
  private final RowPlan plan = new RowPlan(TinyModel.LIMITS);

  @BeforeEach
  void useKernels(MetalDouble metal) {
    metal.useKernels();
    pages.add(3);
    pages.add(5);
    pages.add(9);
  }

  private static TinyModel open(Duration gpuTime) {
    TinyModel model =
        new TinyModel(
            new MetalBackendProvider().open(new BackendOptions(0, "auto", gpuTime, "auto")));
    begin(model);
    return model;
  }

  /** So little that every product has a command buffer of its own. */
  private static TinyModel openInPieces() {
    return open(Duration.ofNanos(1));
  }

  private static void begin(TinyModel model) {
    model.state().clearSlot(0);
    model.state().beginSampling(0, SamplingParameters.of(SamplingOptions.GREEDY, 0, 3), new int[0]);
  }

  private RowPlan rows(int position, int... tokens) {
    plan.clear();
    plan.add(tokens, 0, tokens.length, position, pages, 0, 1, 0);
    return plan;
  }

  /** Logits of a prompt and of the two steps after it. */
  private float[][] answer(TinyModel model) {
    float[][] logits = new float[3][TinyModel.VOCABULARY];
    model.forward(rows(0, PROMPT), logits[0]);
    model.forward(rows(PROMPT.length, RowPlan.PREVIOUS_TOKEN), logits[1]);
    model.forward(rows(PROMPT.length + 1, RowPlan.PREVIOUS_TOKEN), logits[2]);
    return logits;
  }

  @Test
  void givesTheBitsOfOneCommandBuffer(MetalDouble metal) {
    float[][] whole;
    try (TinyModel model = open(Duration.ofHours(1))) {
      whole = answer(model);
      assertThat(metal.get("commits")).isEqualTo(3);
    }
    try (TinyModel model = openInPieces()) {
      long before = metal.get("commits");
      assertThat(answer(model)).isDeepEqualTo(whole);
      // Decode steps stay whole; the prompt takes more buffers than may be open at a time.
      assertThat(metal.get("commits") - before - 2).isGreaterThan(PassCommands.MAX_OPEN);
    }
    assertThat(metal.notes()).isEmpty();
  }

  @Test
  void countsTheTimeOfAllCommandBuffers(MetalDouble metal) {
    try (TinyModel model = openInPieces()) {
      PendingPass pass = model.forward(rows(0, PROMPT), null);
      assertThat(pass.deviceNanos()).isGreaterThan(1000);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 7, 8, 9, 12})
  void reportsAFailureOfAnyOfThemAndRunsTheNextPass(int failing, MetalDouble metal) {
    try (TinyModel model = openInPieces()) {
      metal.fail("run", failing, "MTLCommandBufferErrorDomain", 2, "injected");
      assertThatExceptionOfType(CommandBufferException.Timeout.class)
          .isThrownBy(() -> model.forward(rows(0, PROMPT), null));
      begin(model);
      assertThat(model.forward(rows(0, PROMPT), null).token(0)).isNotNegative();
    }
  }

  @Test
  void closesWhileTheFirstPiecesOfAPassAreInFlight(MetalDouble metal) {
    try (TinyModel model = openInPieces()) {
      metal.fail("commandBuffer", 5, "", 0, "");
      assertThatExceptionOfType(DeviceUnavailableException.class)
          .isThrownBy(() -> model.forward(rows(0, PROMPT), null));
    }
    assertThat(metal.get("commits")).isEqualTo(5);
  }

  @ParameterizedTest
  @ValueSource(strings = {"commandBuffer", "encoder"})
  void goesOnAfterAPassThatGotNoMorePieces(String event, MetalDouble metal) {
    try (TinyModel model = openInPieces()) {
      metal.fail(event, 9, "", 0, "");
      assertThatThrownBy(() -> model.forward(rows(0, PROMPT), null))
          .isInstanceOf(DeviceUnavailableException.class);
      begin(model);
      assertThat(model.forward(rows(0, PROMPT), null).token(0)).isNotNegative();
    }
  }

  @Test
  void splitsAPrefillOfTheLargeModelByItsWork(MetalDouble metal) {
    metal.set("run", 0);
    metal.set("track", 0);
    try (Model35b model = new Model35b(new PassLimits(512, 1, 1, 512))) {
      RowPlan prompt = model.plan();
      model.addPrefill(prompt, 0, 0, 512);
      model.forward(prompt).await();
      // 512 rows of three billion weights in use are some 3 T operations; a tenth of a second is
      // 20 G of them until the first buffers were measured, and ever more then, as these run
      // nothing.
      int first = model.pass().numCommandBuffers();
      assertThat(first).isBetween(8, 150);
      System.out.printf("A prefill of 512 tokens of the 35B: %d command buffers%n", first);
    }
  }
}
