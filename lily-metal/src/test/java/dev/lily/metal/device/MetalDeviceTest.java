package dev.lily.metal.device;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

@ExtendWith(MetalDoubleExtension.class)
class MetalDeviceTest {

  @Test
  void saysWhatTheGpuIs(MetalDouble metal) {
    metal.set("recommended", 107L << 30);
    metal.set("metal4", 0);
    try (MetalDevice device = MetalDevice.open()) {
      assertThat(device.name()).isEqualTo("Metal double");
      assertThat(device.architecture()).isEqualTo("applegpu_double");
      assertThat(device.supports(GpuFamily.APPLE9)).isTrue();
      assertThat(device.supports(GpuFamily.APPLE10)).isFalse();
      assertThat(device.supports(GpuFamily.METAL4)).isFalse();
      assertThat(device.recommendedMaxWorkingSetBytes()).isEqualTo(107L << 30);
      assertThat(device.maxBufferBytes()).isEqualTo(36L << 30);
      assertThat(device.maxThreadgroupBytes()).isEqualTo(32768);
      assertThat(device.currentAllocatedBytes()).isZero();
      MetalBuffer buffer = device.buffer(1000, StorageMode.PRIVATE);
      assertThat(device.currentAllocatedBytes()).isEqualTo(1000);
      buffer.close();
      assertThat(device.currentAllocatedBytes()).isZero();
    }
  }

  @Test
  void takesTheFirstOfAllDevicesWithoutADefaultOne(MetalDouble metal) {
    metal.failNext("defaultDevice");
    try (MetalDevice device = MetalDevice.open()) {
      assertThat(device.name()).isEqualTo("Metal double");
    }
  }

  @Test
  void refusesAMachineWithoutAGpu(MetalDouble metal) {
    metal.failNext("defaultDevice");
    metal.failNext("allDevices");
    assertUnavailable("this process sees none");
  }

  @Test
  void refusesGpusThatLackWhatTheKernelsNeed(MetalDouble metal) {
    metal.set("family", 1006);
    assertUnavailable("Apple silicon (M1 or newer) is needed");
    metal.set("family", 1007);
    metal.set("unified", 0);
    assertUnavailable("not shared with the processor");
    metal.set("unified", 1);
    metal.set("macos", 14);
    assertUnavailable("macOS is older than 15");
    metal.set("macos", 15);
    MetalDevice.open().close();
  }

  private static void assertUnavailable(String reason) {
    assertThatExceptionOfType(DeviceUnavailableException.class)
        .isThrownBy(MetalDevice::open)
        .withMessageContaining(reason)
        .withMessageStartingWith("Opening the GPU");
  }

  @Test
  void readsAndWritesSharedMemoryOnly() {
    try (MetalDevice device = MetalDevice.open()) {
      MetalBuffer shared = device.buffer(64, StorageMode.SHARED);
      assertThat(shared.contents().getAtIndex(JAVA_FLOAT, 3)).as("poison").isNaN();
      MetalBuffer hidden = device.buffer(64, StorageMode.PRIVATE);
      assertThatIllegalStateException()
          .isThrownBy(hidden::contents)
          .withMessageContaining("private");
      shared.setLabel("layers.3.scratch");
      MemorySegment contents = shared.contents();
      shared.close();
      shared.close();
      assertThatIllegalStateException().isThrownBy(() -> contents.get(JAVA_BYTE, 0));
    }
  }

  @Test
  void reportsMemoryThatMetalDoesNotGive(MetalDouble metal) {
    try (MetalDevice device = MetalDevice.open()) {
      metal.failNext("buffer");
      assertThatExceptionOfType(DeviceMemoryException.class)
          .isThrownBy(() -> device.buffer(1 << 20, StorageMode.SHARED))
          .withMessageContaining("1048576 bytes")
          .withMessageContaining("49152 MiB are recommended")
          .withMessageContaining("iogpu.wired_limit_mb");
      assertThatExceptionOfType(DeviceMemoryException.class)
          .isThrownBy(() -> device.buffer(37L << 30, StorageMode.SHARED))
          .withMessageContaining("at most " + (36L << 30));
      assertThatIllegalArgumentException().isThrownBy(() -> device.buffer(0, StorageMode.SHARED));
    }
  }

  @Test
  void wrapsAMappedFileWithoutCopying(@TempDir Path folder) throws IOException {
    Path file = folder.resolve("weights");
    Files.write(file, new byte[10_000]);
    try (MetalDevice device = MetalDevice.open();
        Arena arena = Arena.ofConfined();
        FileChannel channel = FileChannel.open(file)) {
      MemorySegment mapping = channel.map(FileChannel.MapMode.READ_ONLY, 0, 10_000, arena);
      MetalBuffer buffer = device.wrap(mapping);
      assertThat(buffer.byteSize()).isEqualTo(10_000);
      assertThat(buffer.contents().address()).isEqualTo(mapping.address());
      assertThat(device.currentAllocatedBytes() % device.pageBytes()).isZero();
      buffer.close();
    }
  }

  @Test
  void refusesToWrapMemoryThatIsNotMadeOfPages(MetalDouble metal) {
    try (MetalDevice device = MetalDevice.open();
        Arena arena = Arena.ofConfined()) {
      MemorySegment pages = arena.allocate(2 * device.pageBytes(), device.pageBytes());
      assertThatIllegalArgumentException()
          .isThrownBy(() -> device.wrap(pages.asSlice(64)))
          .withMessageContaining("a multiple of " + device.pageBytes());
      assertThatIllegalArgumentException()
          .isThrownBy(() -> device.wrap(MemorySegment.ofArray(new byte[16])));
      metal.failNext("buffer");
      assertThatExceptionOfType(DeviceMemoryException.class)
          .isThrownBy(() -> device.wrap(pages))
          .withMessageContaining("without a copy");
    }
  }

  @Test
  void reportsWhatTheCompilerSays(MetalDouble metal) {
    try (MetalDevice device = MetalDevice.open()) {
      metal.fail("library", 0, "MTLLibraryErrorDomain", 3, "program_source:7:1: error: no ';' — é");
      assertThatExceptionOfType(ShaderCompilationException.class)
          .isThrownBy(() -> MetalFixture.compile(device))
          .withMessage("Compiling stub as MSL_3_1: program_source:7:1: error: no ';' — é");
      assertThatExceptionOfType(ShaderCompilationException.class)
          .isThrownBy(() -> device.compile("bad", "kernel", LanguageVersion.MSL_3_1, MathMode.FAST))
          .withMessageContaining("undeclared identifier");
      metal.set("language", (3 << 16) + 2);
      assertThatExceptionOfType(ShaderCompilationException.class)
          .isThrownBy(
              () ->
                  device.compile(
                      "new", MetalDouble.SOURCE, LanguageVersion.MSL_4_0, MathMode.RELAXED))
          .withMessageContaining("language version");
    }
  }

  @Test
  void reportsKernelsThatCannotBeMade(MetalDouble metal) {
    try (MetalDevice device = MetalDevice.open()) {
      MetalLibrary library = MetalFixture.compile(device);
      assertThatExceptionOfType(ShaderCompilationException.class)
          .isThrownBy(() -> library.pipeline("stub_none"))
          .withMessage("Looking up kernel 'stub_none': stub has none of this name");
      metal.fail("pipeline", 0, "CompilerError", 2, "too many registers");
      assertThatExceptionOfType(ShaderCompilationException.class)
          .isThrownBy(() -> library.pipeline("stub_add"))
          .withMessage("Compiling kernel 'stub_add' of stub for the device: too many registers");
    }
  }

  @Test
  void makesPipelinesThatOutliveTheirLibrary() {
    try (MetalDevice device = MetalDevice.open()) {
      MetalLibrary library = MetalFixture.compile(device);
      ComputePipeline scale = library.pipeline("stub_scale");
      library.close();
      assertThat(scale.name()).isEqualTo("stub_scale");
      assertThat(scale.maxThreads()).isEqualTo(256);
      assertThat(scale.simdWidth()).isEqualTo(32);
      assertThat(scale.staticThreadgroupBytes()).isEqualTo(64);
      assertThat(scale).hasToString("kernel stub_scale");
    }
  }

  @Test
  void compilesOnSeveralThreads() throws ExecutionException, InterruptedException {
    try (MetalDevice device = MetalDevice.open();
        ExecutorService threads = Executors.newFixedThreadPool(4)) {
      List<Future<ComputePipeline>> pipelines = new ArrayList<>();
      for (int i = 0; i < 40; i++) {
        pipelines.add(threads.submit(() -> MetalFixture.compile(device).pipeline("stub_add")));
      }
      for (Future<ComputePipeline> pipeline : pipelines) {
        assertThat(pipeline.get().name()).isEqualTo("stub_add");
      }
    }
  }

  @Test
  void saysSoWhenThereIsNoQueue(MetalDouble metal) {
    try (MetalDevice device = MetalDevice.open()) {
      metal.failNext("queue");
      assertThatExceptionOfType(DeviceUnavailableException.class)
          .isThrownBy(() -> device.queue(2))
          .withMessageContaining("gave none");
    }
  }

  @Test
  void keepsBuffersResident() {
    try (MetalDevice device = MetalDevice.open()) {
      CommandQueue queue = device.queue(2);
      MetalBuffer buffer = device.buffer(4096, StorageMode.SHARED);
      ResidencySet set = device.residencySet(16).orElseThrow();
      set.add(buffer);
      assertThat(set.allocatedBytes()).isZero();
      set.commit();
      assertThat(set.allocatedBytes()).isEqualTo(4096);
      set.request();
      queue.add(set);
      queue.remove(set);
      set.end();
      set.remove(buffer);
      set.commit();
      assertThat(set.allocatedBytes()).isZero();
    }
  }

  @Test
  void closesWithASetThatIsStillInUse() {
    try (MetalDevice device = MetalDevice.open()) {
      ResidencySet set = device.residencySet(16).orElseThrow();
      set.add(device.buffer(4096, StorageMode.SHARED));
      set.commit();
      set.request();
      device.queue(2).add(set);
    }
  }

  @Test
  void hasNoResidencySetsBeforeMacOs15(MetalDouble metal) {
    try (MetalDevice device = MetalDevice.open()) {
      metal.set("macos", 14);
      assertThat(device.residencySet(16)).isEmpty();
      metal.set("macos", 15);
      metal.fail("residencySet", 0, "MTLDevice", 1, "no more sets");
      assertThatExceptionOfType(DeviceUnavailableException.class)
          .isThrownBy(() -> device.residencySet(16))
          .withMessageContaining("no more sets");
    }
  }

  @Test
  void refusesUseAfterClose() {
    MetalDevice device = MetalDevice.open();
    MetalBuffer buffer = device.buffer(64, StorageMode.SHARED);
    device.close();
    device.close();
    assertThat(buffer.isClosed()).isTrue();
    assertThatIllegalStateException().isThrownBy(() -> device.buffer(64, StorageMode.SHARED));
    assertThatIllegalStateException().isThrownBy(buffer::id);
  }
}
