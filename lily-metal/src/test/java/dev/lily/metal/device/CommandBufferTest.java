package dev.lily.metal.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.lily.engine.backend.BackendException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class CommandBufferTest extends MetalTestCase {

  private void addAndCommit(MetalBuffer sum) {
    ComputeEncoder encoder = gpu.begin(DispatchType.CONCURRENT);
    gpu.add(encoder, gpu.a, gpu.b, sum);
    encoder.end();
    gpu.commands.commit();
  }

  @Test
  void runsAKernelFromDeviceToResult() {
    addAndCommit(gpu.c);
    gpu.commands.await();
    assertThat(MetalFixture.read(gpu.c)).startsWith(11, 13, 15).endsWith(137);
    assertThat(gpu.commands.gpuSeconds()).isPositive();
  }

  @Test
  void hasWrittenNothingBeforeItIsAwaited() {
    addAndCommit(gpu.c);
    assertThat(MetalFixture.read(gpu.c)).startsWith(100, 101);
    gpu.commands.await();
    assertThat(MetalFixture.read(gpu.c)).startsWith(11, 13);
  }

  @Test
  void isUsedAgainAndAgain() {
    for (int i = 0; i < 5; i++) {
      addAndCommit(gpu.a);
      gpu.commands.await();
    }
    assertThat(MetalFixture.read(gpu.a)).startsWith(1 + 5 * 10);
  }

  @Test
  void saysWhenItIsCompleted() {
    addAndCommit(gpu.c);
    assertThat(gpu.commands.isCompleted()).isFalse();
    assertThat(gpu.commands.isCompleted()).isTrue();
    assertThat(MetalFixture.read(gpu.c)).startsWith(11);
    gpu.commands.await();
  }

  @Test
  void runsInTheOrderOfCommitsWhenTwoAreInFlight() {
    CommandBuffer second = gpu.queue.commandBuffer();
    addAndCommit(gpu.c);
    second.begin();
    ComputeEncoder encoder = second.encoder(DispatchType.SERIAL);
    gpu.add(encoder, gpu.c, gpu.c, gpu.d);
    encoder.end();
    second.commit();
    second.await();
    gpu.commands.await();
    assertThat(MetalFixture.read(gpu.d)).startsWith(22, 26);
  }

  @ParameterizedTest
  @CsvSource({
    "1, Internal Error (0000000e:kIOGPUCommandBufferCallbackErrorUnknown), InternalFailure, false",
    "2, Caused GPU Timeout Error (00000002:kIOGPUCommandBufferCallbackErrorTimeout), Timeout, false",
    "1, Caused GPU Hang Error (00000003:kIOGPUCommandBufferCallbackErrorHang), Timeout, false",
    "3, Caused GPU Address Fault Error (0000000b:kIOGPUCommandBufferCallbackErrorPageFault),"
        + " PageFault, false",
    "4, Access revoked, SubmissionsIgnored, false",
    "4, Ignored (for causing prior/excessive GPU errors)"
        + " (00000004:kIOGPUCommandBufferCallbackErrorSubmissionsIgnored), SubmissionsIgnored, false",
    "7, Not permitted, NotPermitted, false",
    "8, Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory), OutOfMemory, true",
    "9, Invalid resource, InvalidResource, false",
    "11, Device removed, DeviceRemoved, false",
    "12, Stack overflow, StackOverflow, false",
    "1, Impacting Interactivity (0000000e:kIOGPUCommandBufferCallbackErrorImpactingInteractivity),"
        + " ImpactingInteractivity, false",
    "1, Discarded (victim of GPU error/recovery)"
        + " (00000005:kIOGPUCommandBufferCallbackErrorInnocentVictim), InnocentVictim, true",
    "99, something new, InternalFailure, false",
  })
  void turnsTheDevicesErrorIntoItsException(
      long code, String description, String type, boolean deviceUsable) {
    metal.failRun(code, description);
    addAndCommit(gpu.c);
    assertThatExceptionOfType(CommandBufferException.class)
        .isThrownBy(gpu.commands::await)
        .withMessageContaining(description)
        .satisfies(
            e -> {
              assertThat(e).isInstanceOf(BackendException.class);
              assertThat(e.getClass().getSimpleName()).isEqualTo(type);
              assertThat(e.code()).isEqualTo(code);
              assertThat(e.isDeviceUsable()).isEqualTo(deviceUsable);
            });
    addAndCommit(gpu.c);
    gpu.commands.await();
    assertThat(MetalFixture.read(gpu.c)).startsWith(11);
  }

  @Test
  void reportsAKernelThatLeavesItsBuffers() {
    MetalBuffer small = gpu.device.buffer(16, StorageMode.SHARED);
    addAndCommit(small);
    assertThatExceptionOfType(CommandBufferException.PageFault.class)
        .isThrownBy(gpu.commands::await)
        .withMessageContaining("shorter than the grid");
    assertThat(metal.takeViolations()).singleElement().asString().contains("stub_add");
  }

  @Test
  void saysSoWhenTheQueueGivesNoCommandBuffer() {
    metal.failNext("commandBuffer");
    assertThatExceptionOfType(DeviceUnavailableException.class)
        .isThrownBy(gpu.commands::begin)
        .withMessageContaining("the queue gave none");
    addAndCommit(gpu.c);
    gpu.commands.await();
  }

  @Test
  void saysSoWhenTheCommandBufferGivesNoEncoder() {
    metal.failNext("encoder");
    gpu.commands.begin();
    assertThatExceptionOfType(DeviceUnavailableException.class)
        .isThrownBy(() -> gpu.commands.encoder(DispatchType.SERIAL))
        .withMessageContaining("gave none");
    gpu.commands.discard();
  }

  @Test
  void refusesOneMoreThanTheQueueTakes() {
    CommandBuffer second = gpu.queue.commandBuffer();
    CommandBuffer third = gpu.queue.commandBuffer();
    addAndCommit(gpu.c);
    second.begin();
    second.commit();
    assertThatIllegalStateException()
        .isThrownBy(third::begin)
        .withMessageContaining("2 are not completed");
    gpu.commands.await();
    third.begin();
    third.discard();
    second.await();
  }

  @Test
  void runsNothingThatWasDiscarded() {
    ComputeEncoder encoder = gpu.begin(DispatchType.SERIAL);
    gpu.add(encoder, gpu.a, gpu.b, gpu.c);
    gpu.commands.discard();
    assertThat(MetalFixture.read(gpu.c)).startsWith(100);
    assertThat(metal.get("commits")).isZero();
    assertThat(metal.get("pools")).isZero();
  }

  @Test
  void isRecordedAlone() {
    CommandBuffer second = gpu.queue.commandBuffer();
    gpu.commands.begin();
    assertThatIllegalStateException()
        .isThrownBy(second::begin)
        .withMessageContaining("another one is being recorded");
    gpu.commands.discard();
  }

  @Test
  void refusesStepsOutOfOrder() {
    CommandBuffer commands = gpu.commands;
    assertThatIllegalStateException().isThrownBy(commands::await);
    assertThatIllegalStateException().isThrownBy(commands::commit);
    assertThatIllegalStateException().isThrownBy(commands::isCompleted);
    ComputeEncoder encoder = gpu.begin(DispatchType.SERIAL);
    assertThatIllegalStateException().isThrownBy(commands::begin);
    assertThatIllegalStateException()
        .isThrownBy(() -> commands.encoder(DispatchType.SERIAL))
        .withMessageContaining("has not ended");
    assertThatIllegalStateException()
        .isThrownBy(commands::commit)
        .withMessageContaining("has not ended");
    encoder.end();
    assertThatIllegalStateException().isThrownBy(encoder::barrier);
    commands.discard();
    commands.close();
    assertThatIllegalStateException().isThrownBy(commands::begin);
  }

  @Test
  void mustBeCommittedByTheThreadThatBeganIt() throws InterruptedException {
    gpu.commands.begin();
    Throwable[] thrown = new Throwable[1];
    Thread other =
        Thread.ofPlatform()
            .start(
                () -> {
                  try {
                    gpu.commands.commit();
                  } catch (IllegalStateException e) {
                    thrown[0] = e;
                  }
                });
    other.join();
    assertThat(thrown[0]).hasMessageContaining("must end there");
    gpu.commands.discard();
  }

  @Test
  void keepsABufferThatIsClosedWhileItRuns() {
    addAndCommit(gpu.c);
    gpu.a.close();
    gpu.add.close();
    assertThatIllegalStateException().isThrownBy(gpu.a::id).withMessageContaining("closed");
    long alive = metal.get("live");
    gpu.commands.await();
    assertThat(MetalFixture.read(gpu.c)).startsWith(11);
    assertThat(metal.get("live")).isLessThanOrEqualTo(alive - 3);
  }

  @Test
  void doesNotKeepABufferForWorkThatBeganLater() {
    CommandBuffer second = gpu.queue.commandBuffer();
    addAndCommit(gpu.c);
    long bytes = metal.get("allocated");
    gpu.d.close();
    second.begin();
    second.commit();
    assertThat(metal.get("allocated")).isEqualTo(bytes);
    gpu.commands.await();
    assertThat(metal.get("allocated")).isEqualTo(bytes - 256);
    second.await();
  }

  @Test
  void isFinishedByClosingTheDevice() {
    CommandBuffer second = gpu.queue.commandBuffer();
    addAndCommit(gpu.c);
    second.begin();
    ComputeEncoder encoder = second.encoder(DispatchType.SERIAL);
    gpu.add(encoder, gpu.a, gpu.b, gpu.d);
    gpu.device.close();
    assertThat(metal.get("live")).isZero();
  }

  @Test
  void closesAfterAFailureThatNobodyAwaited() {
    metal.failRun(2, "kIOGPUCommandBufferCallbackErrorTimeout");
    addAndCommit(gpu.c);
    gpu.device.close();
    assertThat(metal.get("live")).isZero();
  }
}
