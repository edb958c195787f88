package dev.lily.metal.device;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(MetalDoubleExtension.class)
class ThinSliceTest {

  @Test
  void runsAKernelFromDeviceToResult() {
    try (MetalDevice device = MetalDevice.open()) {
      CommandQueue queue = device.queue(2);
      MetalBuffer a = device.buffer(256, StorageMode.SHARED);
      MetalBuffer b = device.buffer(256, StorageMode.SHARED);
      MetalBuffer out = device.buffer(256, StorageMode.SHARED);
      for (int i = 0; i < 64; i++) {
        a.contents().setAtIndex(JAVA_FLOAT, i, i);
        b.contents().setAtIndex(JAVA_FLOAT, i, 100);
      }
      MetalLibrary library =
          device.compile("stub", MetalDouble.SOURCE, LanguageVersion.MSL_3_1, MathMode.SAFE);
      ComputePipeline add = library.pipeline("stub_add");
      CommandBuffer commands = queue.commandBuffer();
      commands.begin();
      ComputeEncoder encoder = commands.encoder(DispatchType.CONCURRENT);
      encoder.setPipeline(add);
      encoder.setBuffer(0, a, 0);
      encoder.setBuffer(1, b, 0);
      encoder.setBuffer(2, out, 0);
      encoder.dispatch(2, 1, 1, 32, 1, 1);
      encoder.end();
      commands.commit();
      commands.await();
      assertThat(out.contents().toArray(JAVA_FLOAT)).startsWith(100, 101, 102).hasSize(64);
    }
  }
}
