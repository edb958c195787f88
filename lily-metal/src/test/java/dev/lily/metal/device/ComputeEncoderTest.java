package dev.lily.metal.device;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class ComputeEncoderTest extends MetalTestCase {
  private ComputeEncoder encoder;

  @BeforeEach
  void begin() {
    encoder = gpu.begin(DispatchType.SERIAL);
  }

  @AfterEach
  void discard() {
    gpu.commands.discard();
  }

  private void run() {
    encoder.end();
    gpu.run();
  }

  @Test
  void bindsStructsByValueAndThreadgroupMemory() {
    gpu.scale(encoder, gpu.b);
    run();
    assertThat(MetalFixture.read(gpu.b)).startsWith(30, 33, 36);
  }

  @Test
  void copiesStructsWhenTheyAreBound() {
    encoder.setPipeline(gpu.scale);
    encoder.setBuffer(0, gpu.b, 0);
    encoder.setBytes(1, gpu.factor, 0, Float.BYTES);
    gpu.factor.set(JAVA_FLOAT, 0, 1000);
    encoder.setThreadgroupMemory(0, 64);
    encoder.dispatch(2, 1, 1, 32, 1, 1);
    run();
    assertThat(MetalFixture.read(gpu.b)).startsWith(30, 33, 36);
  }

  @Test
  void keepsBindingsFromDispatchToDispatch() {
    gpu.add(encoder, gpu.a, gpu.b, gpu.c, 0, 32);
    encoder.setBufferOffset(0, 32 * Float.BYTES);
    encoder.setBufferOffset(1, 0);
    encoder.setBufferOffset(2, 32 * Float.BYTES);
    encoder.dispatch(1, 1, 1, 32, 1, 1);
    run();
    assertThat(MetalFixture.read(gpu.c)[31]).isEqualTo(32 + 41);
    assertThat(MetalFixture.read(gpu.c)[32]).isEqualTo(33 + 10);
  }

  @Test
  void bindsSeveralBuffersInOneMessage() {
    BufferBindings bindings = new BufferBindings(gpu.device, 0, 3);
    bindings.set(0, gpu.a, 0);
    bindings.set(1, gpu.b, 128);
    bindings.set(2, gpu.c, 128);
    encoder.setPipeline(gpu.add);
    encoder.setBuffers(bindings);
    encoder.dispatch(1, 1, 1, 32, 1, 1);
    run();
    assertThat(MetalFixture.read(gpu.c)[31]).isEqualTo(131);
    assertThat(MetalFixture.read(gpu.c)[32]).isEqualTo(1 + 42);
  }

  @Test
  void refusesBindingsThatAreNotSetOrClosed() {
    BufferBindings bindings = new BufferBindings(gpu.device, 0, 2);
    bindings.set(0, gpu.a, 0);
    assertThatIllegalStateException()
        .isThrownBy(() -> encoder.setBuffers(bindings))
        .withMessageContaining("index 1");
    bindings.set(1, gpu.b, 0);
    gpu.a.close();
    assertThatIllegalStateException()
        .isThrownBy(() -> encoder.setBuffers(bindings))
        .withMessageContaining("index 0");
  }

  @Test
  void readsTheGridFromTheGpu() {
    MetalBuffer counts = gpu.device.buffer(64, StorageMode.PRIVATE);
    encoder.setPipeline(gpu.count);
    encoder.setBuffer(0, counts, 16);
    encoder.setBytes(1, arena.allocateFrom(JAVA_INT, 2), 0, Integer.BYTES);
    encoder.dispatch(1, 1, 1, 32, 1, 1);
    encoder.setPipeline(gpu.add);
    encoder.setBuffer(0, gpu.a, 0);
    encoder.setBuffer(1, gpu.b, 0);
    encoder.setBuffer(2, gpu.c, 0);
    encoder.dispatchIndirect(counts, 16, 8, 1, 1);
    run();
    assertThat(MetalFixture.read(gpu.c)[15]).isEqualTo(16 + 25);
    assertThat(MetalFixture.read(gpu.c)[16]).isEqualTo(116);
  }

  @Test
  void refusesBindingsOutsideTheirBounds() {
    assertThatExceptionOfType(IndexOutOfBoundsException.class)
        .isThrownBy(() -> encoder.setBuffer(31, gpu.a, 0))
        .withMessageContaining("index 31");
    assertThatExceptionOfType(IndexOutOfBoundsException.class)
        .isThrownBy(() -> encoder.setBuffer(-1, gpu.a, 0));
    assertThatExceptionOfType(IndexOutOfBoundsException.class)
        .isThrownBy(() -> encoder.setBuffer(0, gpu.a, 256))
        .withMessageContaining("byte 256 of a buffer of 256 bytes");
    assertThatExceptionOfType(IndexOutOfBoundsException.class)
        .isThrownBy(() -> encoder.setBuffer(0, gpu.a, -4));
    assertThatIllegalArgumentException()
        .isThrownBy(() -> encoder.setBytes(0, arena.allocate(5000), 0, 4097))
        .withMessageContaining("4096");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> encoder.setBytes(0, gpu.factor, 2, 4))
        .withMessageContaining("not native memory of 4 bytes");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> encoder.setBytes(0, MemorySegment.ofArray(new byte[8]), 0, 8));
    assertThatIllegalArgumentException()
        .isThrownBy(() -> encoder.setThreadgroupMemory(0, 40))
        .withMessageContaining("multiples of 16");
    assertThatIllegalArgumentException().isThrownBy(() -> encoder.setThreadgroupMemory(0, 32784));
  }

  @Test
  void refusesGridsThatThePipelineDoesNotTake() {
    assertThatIllegalStateException()
        .isThrownBy(() -> encoder.dispatch(1, 1, 1, 32, 1, 1))
        .withMessageContaining("no pipeline");
    encoder.setPipeline(gpu.scale);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> encoder.dispatch(1, 1, 1, 512, 1, 1))
        .withMessageContaining("it runs 1 to 256");
    assertThatIllegalArgumentException().isThrownBy(() -> encoder.dispatch(1, 1, 1, 0, 1, 1));
    assertThatIllegalArgumentException().isThrownBy(() -> encoder.dispatch(1, 0, 1, 32, 1, 1));
    assertThatExceptionOfType(IndexOutOfBoundsException.class)
        .isThrownBy(() -> encoder.dispatchIndirect(gpu.a, 248, 32, 1, 1));
    assertThatIllegalArgumentException()
        .isThrownBy(() -> encoder.dispatchIndirect(gpu.a, 2, 32, 1, 1));
  }

  @Test
  void refusesObjectsThatAreClosed() {
    gpu.a.close();
    gpu.add.close();
    assertThatIllegalStateException()
        .isThrownBy(() -> encoder.setBuffer(0, gpu.a, 0))
        .withMessage("MetalBuffer is closed");
    assertThatIllegalStateException()
        .isThrownBy(() -> encoder.setPipeline(gpu.add))
        .withMessage("ComputePipeline is closed");
  }

  @Test
  void takesFewerThreadsWhereThePipelineHasFewer() {
    metal.set("maxThreads", 96);
    ComputePipeline pipeline = gpu.library.pipeline("stub_add");
    assertThat(pipeline.maxThreads()).isEqualTo(96);
    encoder.setPipeline(pipeline);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> encoder.dispatch(1, 1, 1, 128, 1, 1))
        .withMessageContaining("stub_add");
  }
}
