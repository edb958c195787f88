package dev.lily.metal.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class DispatchListTest extends MetalTestCase {
  private final DispatchList list = new DispatchList();

  @AfterEach
  void closeList() {
    list.close();
  }

  /** sum = left + right over 64 elements. */
  private int add(MetalBuffer left, MetalBuffer right, MetalBuffer sum, boolean afterBarrier) {
    list.begin(gpu.add);
    list.bind(left, 0);
    list.bind(right, 0);
    list.bind(sum, 0);
    return list.dispatch(1, 1, 1, 64, 0, afterBarrier);
  }

  private void run() {
    ComputeEncoder encoder = gpu.begin(DispatchType.CONCURRENT);
    encoder.encode(list);
    encoder.end();
    gpu.run();
  }

  @Test
  void runsItsDispatchesEachTimeItIsSent() {
    add(gpu.a, gpu.b, gpu.c, false);
    add(gpu.c, gpu.b, gpu.d, true);
    run();
    assertThat(MetalFixture.read(gpu.d)).startsWith(1 + 10 + 10, 2 + 11 + 11);
    gpu.b.contents().fill((byte) 0);
    run();
    assertThat(MetalFixture.read(gpu.d)).startsWith(1, 2);
    assertThat(metal.notes()).isEmpty();
  }

  @Test
  void sendsOneMessageForAllBuffersAndNoneForWhatStays() {
    add(gpu.a, gpu.b, gpu.c, false);
    add(gpu.a, gpu.b, gpu.d, false);
    list.begin(gpu.scale);
    list.bind(gpu.c, 0);
    list.bind(gpu.b, 0);
    list.dispatch(1, 1, 1, 64, 64, true);
    ComputeEncoder encoder = gpu.begin(DispatchType.CONCURRENT);
    long messages = metal.get("messages");
    encoder.encode(list);
    // Pipelines 2, buffers 3, dispatches 3, threadgroup memory 1, barriers 1.
    assertThat(metal.get("messages") - messages).isEqualTo(10);
    encoder.end();
    gpu.run();
  }

  @Test
  void growsBeyondItsFirstSize() {
    for (int i = 0; i < 300; i++) {
      add(gpu.a, gpu.b, i % 2 == 0 ? gpu.c : gpu.d, i > 1);
    }
    assertThat(list.size()).isEqualTo(300);
    run();
    assertThat(MetalFixture.read(gpu.d)).startsWith(11, 13);
  }

  @Test
  void forgetsWhatWasBegunAndNotFinished() {
    list.begin(gpu.scale);
    list.bind(gpu.d, 0);
    add(gpu.a, gpu.b, gpu.c, false);
    run();
    assertThat(MetalFixture.read(gpu.c)).startsWith(11);
    list.clear();
    assertThat(list.size()).isZero();
  }

  @Test
  void changesTheGridOfADispatch() {
    list.begin(gpu.add);
    list.bind(gpu.a, 0);
    list.bind(gpu.b, 0);
    list.bind(gpu.c, 0);
    int dispatch = list.dispatch(1, 1, 1, 32, 0, false);
    list.setGroups(dispatch, 2);
    run();
    assertThat(MetalFixture.read(gpu.c)[40]).isEqualTo(41 + 50);
    assertThatIllegalArgumentException().isThrownBy(() -> list.setGroups(dispatch, 0));
    assertThatExceptionOfType(IndexOutOfBoundsException.class)
        .isThrownBy(() -> list.setGroups(1, 1));
  }

  @Test
  void refusesWhatTheGpuWouldAnswerWithAFault() {
    list.begin(gpu.scale);
    assertThatExceptionOfType(IndexOutOfBoundsException.class)
        .isThrownBy(() -> list.bind(gpu.a, 256));
    for (int i = 0; i < ComputeEncoder.NUM_BUFFER_INDICES; i++) {
      list.bind(gpu.a, 0);
    }
    assertThatExceptionOfType(IndexOutOfBoundsException.class)
        .isThrownBy(() -> list.bind(gpu.a, 0))
        .withMessageContaining("index 31");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> list.dispatch(1, 1, 1, 512, 0, false))
        .withMessageContaining("it runs 1 to 256");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> list.dispatch(1, 0, 1, 32, 0, false))
        .withMessageContaining("at least 1");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> list.dispatch(1, 1, 1, 32, 40, false))
        .withMessageContaining("multiple of 16");
    gpu.a.close();
    list.begin(gpu.scale);
    assertThatIllegalStateException().isThrownBy(() -> list.bind(gpu.a, 0));
  }
}
