package dev.lily.metal.device;

import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.lily.metal.objc.AutoreleasePool;
import dev.lily.metal.objc.MessageSend;
import dev.lily.metal.objc.ObjcObject;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.LongConsumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;

/**
 * What Metal's validation layer refuses, the double refuses: sent past the wrappers' own checks.
 */
class DoubleValidationTest extends MetalTestCase {

  /** Sends messages to a raw encoder inside a command buffer that then runs. */
  private String encode(LongConsumer messages) {
    long status;
    try (AutoreleasePool _ = AutoreleasePool.open()) {
      long commands =
          MessageSend.sendForLong(gpu.queue.id(), MetalSelectors.COMMAND_BUFFER_UNRETAINED);
      long encoder = MessageSend.sendForLong(commands, MetalSelectors.COMPUTE_COMMAND_ENCODER, 1);
      messages.accept(encoder);
      MessageSend.send(encoder, MetalSelectors.END_ENCODING);
      MessageSend.send(commands, MetalSelectors.COMMIT);
      MessageSend.send(commands, MetalSelectors.WAIT_UNTIL_COMPLETED);
      status = MessageSend.sendForLong(commands, MetalSelectors.STATUS);
    }
    assertThat(status).as("status").isEqualTo(5);
    return String.join("\n", metal.takeViolations());
  }

  private void bindAdd(long encoder) {
    MessageSend.send(encoder, MetalSelectors.SET_PIPELINE, gpu.add.id());
    MessageSend.send(encoder, MetalSelectors.SET_BUFFER, gpu.a.id(), 0, 0);
    MessageSend.send(encoder, MetalSelectors.SET_BUFFER, gpu.b.id(), 0, 1);
    MessageSend.send(encoder, MetalSelectors.SET_BUFFER, gpu.c.id(), 0, 2);
  }

  private void dispatch(long encoder, long groups, long threads) {
    MessageSend.send(encoder, MetalSelectors.DISPATCH, size(groups), size(threads));
  }

  private MemorySegment size(long width) {
    return arena.allocateFrom(JAVA_LONG, width, 1, 1);
  }

  private record Refusal(String violation, LongConsumer messages) {}

  @TestFactory
  Stream<DynamicTest> refuses() {
    return Stream.of(
            new Refusal(
                "nothing is bound to index 1 (b)",
                e -> {
                  MessageSend.send(e, MetalSelectors.SET_PIPELINE, gpu.add.id());
                  MessageSend.send(e, MetalSelectors.SET_BUFFER, gpu.a.id(), 0, 0);
                  dispatch(e, 1, 32);
                }),
            new Refusal("without a pipeline", e -> dispatch(e, 1, 32)),
            new Refusal(
                "offset 300 of a buffer of 256 bytes",
                e -> MessageSend.send(e, MetalSelectors.SET_BUFFER, gpu.a.id(), 300, 0)),
            new Refusal(
                "index 31 is above 30",
                e -> MessageSend.send(e, MetalSelectors.SET_BUFFER, gpu.a.id(), 0, 31)),
            new Refusal(
                "the object is nil", e -> MessageSend.send(e, MetalSelectors.SET_BUFFER, 0, 0, 0)),
            new Refusal(
                "setComputePipelineState: the object is nil",
                e -> MessageSend.send(e, MetalSelectors.SET_PIPELINE, 0)),
            new Refusal(
                "no buffer at index 5",
                e -> MessageSend.send(e, MetalSelectors.SET_BUFFER_OFFSET, 0, 5)),
            new Refusal(
                "setBytes: 4097 bytes",
                e ->
                    MessageSend.send(
                        e, MetalSelectors.SET_BYTES, arena.allocate(4097).address(), 4097, 0)),
            new Refusal(
                "24 is no multiple of 16",
                e -> MessageSend.send(e, MetalSelectors.SET_THREADGROUP_MEMORY, 24, 0)),
            new Refusal(
                "2048 threads a threadgroup, the pipeline takes 1 to 1024",
                e -> {
                  bindAdd(e);
                  dispatch(e, 1, 2048);
                }),
            new Refusal(
                "0 threads a threadgroup",
                e -> {
                  bindAdd(e);
                  dispatch(e, 1, 0);
                }),
            new Refusal(
                "a grid of no threadgroups",
                e -> {
                  bindAdd(e);
                  dispatch(e, 0, 32);
                }),
            new Refusal(
                "no length is set for threadgroup memory 0",
                e -> {
                  MessageSend.send(e, MetalSelectors.SET_PIPELINE, gpu.scale.id());
                  MessageSend.send(e, MetalSelectors.SET_BUFFER, gpu.a.id(), 0, 0);
                  MessageSend.send(e, MetalSelectors.SET_BUFFER, gpu.b.id(), 0, 1);
                  dispatch(e, 1, 32);
                }),
            new Refusal(
                "bytes of threadgroup memory",
                e -> {
                  MessageSend.send(e, MetalSelectors.SET_PIPELINE, gpu.scale.id());
                  MessageSend.send(e, MetalSelectors.SET_BUFFER, gpu.a.id(), 0, 0);
                  MessageSend.send(e, MetalSelectors.SET_BUFFER, gpu.b.id(), 0, 1);
                  MessageSend.send(e, MetalSelectors.SET_THREADGROUP_MEMORY, 32768, 0);
                  dispatch(e, 1, 32);
                }),
            new Refusal(
                "offset 4 at index 1 (factor), a constant, is no multiple of 256",
                e -> {
                  MessageSend.send(e, MetalSelectors.SET_PIPELINE, gpu.scale.id());
                  MessageSend.send(e, MetalSelectors.SET_BUFFER, gpu.a.id(), 0, 0);
                  MessageSend.send(e, MetalSelectors.SET_BUFFER, gpu.b.id(), 4, 1);
                  MessageSend.send(e, MetalSelectors.SET_THREADGROUP_MEMORY, 64, 0);
                  dispatch(e, 1, 32);
                }),
            new Refusal(
                "offset 2 at index 0 (a) is no multiple of 4",
                e -> {
                  bindAdd(e);
                  MessageSend.send(e, MetalSelectors.SET_BUFFER_OFFSET, 2, 0);
                  dispatch(e, 1, 32);
                }),
            new Refusal(
                "2 bytes are bound to index 1 (b), an element has 4",
                e -> {
                  bindAdd(e);
                  MessageSend.send(e, MetalSelectors.SET_BYTES, gpu.factor.address(), 2, 1);
                  dispatch(e, 1, 32);
                }),
            new Refusal(
                "index 2 (out) is written, but setBytes: bound it",
                e -> {
                  bindAdd(e);
                  MessageSend.send(e, MetalSelectors.SET_BYTES, gpu.factor.address(), 4, 2);
                  dispatch(e, 1, 1);
                }),
            new Refusal(
                "memoryBarrierWithScope: 2",
                e -> MessageSend.send(e, MetalSelectors.MEMORY_BARRIER, 2)),
            new Refusal(
                "indirect counts at 252",
                e -> {
                  bindAdd(e);
                  MessageSend.send(e, MetalSelectors.DISPATCH_INDIRECT, gpu.a.id(), 252, size(32));
                }))
        .map(
            refusal ->
                DynamicTest.dynamicTest(
                    refusal.violation(),
                    () -> assertThat(encode(refusal.messages())).contains(refusal.violation())));
  }

  @Test
  void refusesToWriteAMappedFile(@TempDir Path folder) throws IOException {
    Path file = folder.resolve("weights");
    Files.write(file, new byte[4096]);
    try (FileChannel channel = FileChannel.open(file)) {
      MetalBuffer weights =
          gpu.device.wrap(channel.map(FileChannel.MapMode.READ_ONLY, 0, 4096, arena));
      String violations =
          encode(
              e -> {
                bindAdd(e);
                MessageSend.send(e, MetalSelectors.SET_BUFFER, weights.id(), 0, 2);
                dispatch(e, 1, 32);
              });
      assertThat(violations).contains("index 2 (out) is written, but wraps read-only memory");
    }
  }

  @Test
  void findsABufferReleasedBeforeItsKernelRuns() {
    long doomed = newBuffer();
    String violations =
        encode(
            e -> {
              bindAdd(e);
              MessageSend.send(e, MetalSelectors.SET_BUFFER, doomed, 0, 0);
              dispatch(e, 1, 32);
              ObjcObject.release(doomed);
            });
    assertThat(violations).contains("stub_add: the DoubleBuffer was released");
  }

  /** A buffer that no wrapper owns. */
  private static long newBuffer() {
    long device = MetalFramework.CREATE_SYSTEM_DEFAULT_DEVICE.callForLong();
    long buffer = MessageSend.sendForLong(device, MetalSelectors.NEW_BUFFER, 256, 0);
    ObjcObject.release(device);
    return buffer;
  }

  @Test
  void findsAnEncoderThatIsNotEnded() {
    try (AutoreleasePool _ = AutoreleasePool.open()) {
      long commands =
          MessageSend.sendForLong(gpu.queue.id(), MetalSelectors.COMMAND_BUFFER_UNRETAINED);
      MessageSend.sendForLong(commands, MetalSelectors.COMPUTE_COMMAND_ENCODER, 0);
    }
    assertThat(metal.takeViolations())
        .containsExactly("a compute encoder is released without endEncoding");
  }

  @Test
  void findsUseAfterTheEncoderEnded() {
    ComputeEncoder encoder = gpu.begin(DispatchType.SERIAL);
    encoder.end();
    try (AutoreleasePool _ = AutoreleasePool.open()) {
      long commands =
          MessageSend.sendForLong(gpu.queue.id(), MetalSelectors.COMMAND_BUFFER_UNRETAINED);
      long raw = MessageSend.sendForLong(commands, MetalSelectors.COMPUTE_COMMAND_ENCODER, 0);
      MessageSend.send(raw, MetalSelectors.END_ENCODING);
      MessageSend.send(raw, MetalSelectors.MEMORY_BARRIER, 1);
      MessageSend.send(commands, MetalSelectors.WAIT_UNTIL_COMPLETED);
      MessageSend.send(commands, MetalSelectors.COMMIT);
      MessageSend.send(commands, MetalSelectors.COMMIT);
      MessageSend.sendForLong(commands, MetalSelectors.COMPUTE_COMMAND_ENCODER, 0);
      MessageSend.send(commands, MetalSelectors.WAIT_UNTIL_COMPLETED);
    }
    assertThat(metal.takeViolations())
        .containsExactly(
            "memoryBarrierWithScope: on an encoder that has ended",
            "waitUntilCompleted before commit",
            "a command buffer is committed twice",
            "an encoder is asked of a committed command buffer");
    gpu.commands.discard();
  }

  @Test
  void findsMessagesThatAnObjectDoesNotHaveAndReleasedObjects() {
    MessageSend.send(gpu.queue.id(), MetalSelectors.END_ENCODING);
    long buffer = newBuffer();
    ObjcObject.release(buffer);
    assertThat(MessageSend.sendForLong(buffer, MetalSelectors.CONTENTS)).isZero();
    ObjcObject.release(buffer);
    assertThat(metal.takeViolations())
        .containsExactly(
            "DoubleCommandQueue has no method endEncoding",
            "message contents to a released DoubleBuffer",
            "release: the DoubleBuffer was released");
  }

  @Test
  void wouldBlockOnOneCommandBufferTooMany() {
    try (AutoreleasePool _ = AutoreleasePool.open()) {
      for (int i = 0; i < 3; i++) {
        MessageSend.sendForLong(gpu.queue.id(), MetalSelectors.COMMAND_BUFFER_UNRETAINED);
      }
    }
    assertThat(metal.takeViolations()).singleElement().asString().contains("block for ever");
  }

  @Test
  void answersNilWithZero() {
    assertThat(MessageSend.sendForLong(0, MetalSelectors.CONTENTS)).isZero();
    assertThat(MessageSend.sendForBoolean(0, MetalSelectors.HAS_UNIFIED_MEMORY)).isFalse();
    assertThat(MessageSend.sendForDouble(0, MetalSelectors.GPU_START_TIME)).isZero();
  }

  @Test
  void checksSignaturesOfMessages() {
    assertThatExceptionOfType(AssertionError.class)
        .isThrownBy(() -> MessageSend.send(gpu.queue.id(), MetalSelectors.SET_BUFFER));
  }
}
