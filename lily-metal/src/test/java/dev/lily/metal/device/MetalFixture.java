package dev.lily.metal.device;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** An open device with the stub kernels, a queue and a few buffers of 64 floats. */
final class MetalFixture implements AutoCloseable {
  static final int SIZE = 64;

  final MetalDevice device = MetalDevice.open();
  final CommandQueue queue = device.queue(2);
  final MetalLibrary library = compile(device);
  final ComputePipeline add = library.pipeline("stub_add");
  final ComputePipeline scale = library.pipeline("stub_scale");
  final ComputePipeline count = library.pipeline("stub_count");
  final CommandBuffer commands = queue.commandBuffer();
  final MetalBuffer a = floats(1);
  final MetalBuffer b = floats(10);
  final MetalBuffer c = floats(100);
  final MetalBuffer d = floats(1000);
  final MemorySegment factor;

  MetalFixture(Arena arena) {
    factor = arena.allocateFrom(JAVA_FLOAT, 3);
  }

  static MetalLibrary compile(MetalDevice device) {
    return device.compile("stub", MetalDouble.SOURCE, LanguageVersion.MSL_3_1, MathMode.SAFE);
  }

  /** A buffer of ascending floats. */
  MetalBuffer floats(float first) {
    MetalBuffer buffer = device.buffer(SIZE * Float.BYTES, StorageMode.SHARED);
    for (int i = 0; i < SIZE; i++) {
      buffer.contents().setAtIndex(JAVA_FLOAT, i, first + i);
    }
    return buffer;
  }

  ComputeEncoder begin(DispatchType type) {
    commands.begin();
    return commands.encoder(type);
  }

  void add(ComputeEncoder encoder, MetalBuffer left, MetalBuffer right, MetalBuffer sum) {
    add(encoder, left, right, sum, 0, SIZE);
  }

  /** sum = left + right over some of the elements. */
  void add(
      ComputeEncoder encoder,
      MetalBuffer left,
      MetalBuffer right,
      MetalBuffer sum,
      long firstElement,
      long numElements) {
    encoder.setPipeline(add);
    encoder.setBuffer(0, left, firstElement * Float.BYTES);
    encoder.setBuffer(1, right, firstElement * Float.BYTES);
    encoder.setBuffer(2, sum, firstElement * Float.BYTES);
    encoder.dispatch(1, 1, 1, numElements, 1, 1);
  }

  /** x = 3 x. */
  void scale(ComputeEncoder encoder, MetalBuffer x) {
    encoder.setPipeline(scale);
    encoder.setBuffer(0, x, 0);
    encoder.setBytes(1, factor, 0, Float.BYTES);
    encoder.setThreadgroupMemory(0, 64);
    encoder.dispatch(2, 1, 1, 32, 1, 1);
  }

  void run() {
    commands.commit();
    commands.await();
  }

  static float[] read(MetalBuffer buffer) {
    return buffer.contents().toArray(JAVA_FLOAT);
  }

  @Override
  public void close() {
    device.close();
  }
}
