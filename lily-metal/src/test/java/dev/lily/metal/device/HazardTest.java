package dev.lily.metal.device;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The double's hazard checker, which later proves the barriers of whole passes. */
class HazardTest extends MetalTestCase {

  private void run(ComputeEncoder encoder) {
    encoder.end();
    gpu.run();
  }

  @Test
  void findsAReadAfterAWrite() {
    ComputeEncoder encoder = gpu.begin(DispatchType.CONCURRENT);
    gpu.add(encoder, gpu.a, gpu.b, gpu.c);
    gpu.add(encoder, gpu.c, gpu.b, gpu.d);
    run(encoder);
    assertThat(metal.takeViolations()).singleElement().asString().contains("reads", "barrier");
  }

  @Test
  void findsAWriteAfterARead() {
    ComputeEncoder encoder = gpu.begin(DispatchType.CONCURRENT);
    gpu.add(encoder, gpu.a, gpu.b, gpu.c);
    gpu.add(encoder, gpu.d, gpu.d, gpu.a);
    run(encoder);
    assertThat(metal.takeViolations())
        .singleElement()
        .asString()
        .contains("stub_add writes", "reads; a barrier is missing");
  }

  @Test
  void findsTwoWrites() {
    ComputeEncoder encoder = gpu.begin(DispatchType.CONCURRENT);
    gpu.add(encoder, gpu.a, gpu.b, gpu.c);
    gpu.add(encoder, gpu.a, gpu.b, gpu.c);
    run(encoder);
    assertThat(metal.takeViolations())
        .singleElement()
        .asString()
        .contains("stub_add writes", "writes; a barrier is missing");
  }

  @Test
  void findsAGridThatIsReadBeforeItIsWritten() {
    MetalBuffer counts = gpu.device.buffer(64, StorageMode.SHARED);
    ComputeEncoder encoder = gpu.begin(DispatchType.CONCURRENT);
    encoder.setPipeline(gpu.count);
    encoder.setBuffer(0, counts, 0);
    encoder.setBytes(1, arena.allocateFrom(JAVA_INT, 2), 0, Integer.BYTES);
    encoder.dispatch(1, 1, 1, 32, 1, 1);
    encoder.setPipeline(gpu.add);
    encoder.setBuffer(0, gpu.a, 0);
    encoder.setBuffer(1, gpu.b, 0);
    encoder.setBuffer(2, gpu.c, 0);
    encoder.dispatchIndirect(counts, 0, 32, 1, 1);
    run(encoder);
    assertThat(metal.takeViolations()).singleElement().asString().contains("stub_count");
  }

  @Test
  void allowsWhatABarrierOrders() {
    ComputeEncoder encoder = gpu.begin(DispatchType.CONCURRENT);
    gpu.add(encoder, gpu.a, gpu.b, gpu.c);
    encoder.barrier();
    gpu.add(encoder, gpu.c, gpu.b, gpu.d);
    encoder.barrier();
    gpu.scale(encoder, gpu.d);
    run(encoder);
    assertThat(metal.violations()).isEmpty();
    assertThat(metal.notes()).isEmpty();
    assertThat(MetalFixture.read(gpu.d)).startsWith(3 * (11 + 10));
  }

  @Test
  void saysWhichBarrierCouldBeLeftOut() {
    metal.set("mutate", 1);
    ComputeEncoder encoder = gpu.begin(DispatchType.CONCURRENT);
    gpu.add(encoder, gpu.a, gpu.b, gpu.c);
    encoder.barrier();
    gpu.add(encoder, gpu.c, gpu.b, gpu.d);
    encoder.barrier();
    gpu.add(encoder, gpu.a, gpu.b, gpu.a, 0, 1);
    run(encoder);
    assertThat(metal.violations()).isEmpty();
    assertThat(metal.get("mutants")).isEqualTo(2);
    assertThat(metal.notes())
        .containsExactly(
            "barrier 1 orders nothing: before it {stub_add}, after it {stub_add}",
            "barrier 1 can be left out unnoticed");
  }

  @Test
  void allowsReadersAndDisjointRangesTogether() {
    ComputeEncoder encoder = gpu.begin(DispatchType.CONCURRENT);
    gpu.add(encoder, gpu.a, gpu.b, gpu.c, 0, 32);
    gpu.add(encoder, gpu.a, gpu.b, gpu.c, 32, 32);
    gpu.add(encoder, gpu.a, gpu.b, gpu.d);
    run(encoder);
    assertThat(metal.violations()).isEmpty();
  }

  @Test
  void seesTheSameMemoryBehindTwoBuffers() {
    MetalBuffer alias = gpu.device.wrap(gpu.c.contents());
    ComputeEncoder encoder = gpu.begin(DispatchType.CONCURRENT);
    gpu.add(encoder, gpu.a, gpu.b, gpu.c);
    gpu.add(encoder, alias, gpu.b, gpu.d);
    run(encoder);
    assertThat(metal.takeViolations()).hasSize(1);
  }

  @Test
  void asksForNoBarrierInASerialEncoder() {
    ComputeEncoder encoder = gpu.begin(DispatchType.SERIAL);
    gpu.add(encoder, gpu.a, gpu.b, gpu.c);
    gpu.add(encoder, gpu.c, gpu.b, gpu.d);
    run(encoder);
    assertThat(metal.violations()).isEmpty();
  }

  @Test
  void asksForNoBarrierBetweenEncoders() {
    ComputeEncoder encoder = gpu.begin(DispatchType.CONCURRENT);
    gpu.add(encoder, gpu.a, gpu.b, gpu.c);
    encoder.end();
    gpu.commands.encoder(DispatchType.CONCURRENT);
    gpu.add(encoder, gpu.c, gpu.b, gpu.d);
    run(encoder);
    assertThat(metal.violations()).isEmpty();
  }

  @Test
  void reportsABarrierThatOrdersNothing() {
    ComputeEncoder encoder = gpu.begin(DispatchType.CONCURRENT);
    gpu.add(encoder, gpu.a, gpu.b, gpu.c);
    encoder.barrier();
    gpu.add(encoder, gpu.a, gpu.b, gpu.d);
    encoder.barrier();
    gpu.add(encoder, gpu.d, gpu.b, gpu.a);
    encoder.barrier();
    run(encoder);
    assertThat(metal.notes())
        .satisfiesExactly(
            note -> assertThat(note).startsWith("barrier 0 orders nothing"),
            note -> assertThat(note).startsWith("barrier 2 orders nothing"));
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2})
  void failsWhenAnyNeededBarrierIsLeftOut(int barrier) {
    metal.set("dropBarrier", barrier);
    ComputeEncoder encoder = gpu.begin(DispatchType.CONCURRENT);
    gpu.add(encoder, gpu.a, gpu.b, gpu.c);
    encoder.barrier();
    gpu.add(encoder, gpu.c, gpu.b, gpu.d);
    encoder.barrier();
    gpu.scale(encoder, gpu.c);
    encoder.barrier();
    gpu.add(encoder, gpu.c, gpu.d, gpu.a);
    run(encoder);
    assertThat(metal.takeViolations()).isNotEmpty();
    assertThat(metal.get("barriers")).isEqualTo(3);
  }
}
