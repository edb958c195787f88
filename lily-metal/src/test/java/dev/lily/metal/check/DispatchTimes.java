package dev.lily.metal.check;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import dev.lily.metal.device.CommandBuffer;
import dev.lily.metal.device.ComputeEncoder;
import dev.lily.metal.device.ComputePipeline;
import dev.lily.metal.device.DispatchType;
import dev.lily.metal.device.LanguageVersion;
import dev.lily.metal.device.MathMode;
import dev.lily.metal.device.MetalBuffer;
import dev.lily.metal.device.MetalDevice;
import dev.lily.metal.device.StorageMode;
import dev.lily.metal.msl.MslToolchain;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.Locale;

/** What a dispatch costs when the kernel does next to nothing. */
final class DispatchTimes {
  static final int NUM_DISPATCHES = 400; // a decode token has about as many

  private static final int WORDS = 64;
  private static final int WORD_BYTES = 16;

  private DispatchTimes() {}

  /** Medians per dispatch in microseconds. */
  record Times(double recording, double gpu, double whole) {
    @Override
    public String toString() {
      return String.format(
          Locale.ROOT,
          "%.2f us to record, %.2f us on the GPU, %.2f us in all a dispatch",
          recording,
          gpu,
          whole);
    }
  }

  /** Times command buffers of {@value #NUM_DISPATCHES} dispatches; as many again warm up. */
  static Times measure(MetalDevice device, DispatchType type, boolean hasBarriers, int rounds) {
    double[] recording = new double[rounds];
    double[] gpu = new double[rounds];
    double[] whole = new double[rounds];
    ComputePipeline clear =
        device
            .compile(
                "elementwise.metal",
                MslToolchain.source("elementwise"),
                LanguageVersion.MSL_3_1,
                MathMode.SAFE)
            .pipeline("clear_words");
    try (Arena arena = Arena.ofConfined();
        MetalBuffer buffer =
            device.buffer((long) NUM_DISPATCHES * WORDS * WORD_BYTES, StorageMode.SHARED);
        CommandBuffer commands = device.queue(1).commandBuffer()) {
      MemorySegment count = arena.allocateFrom(JAVA_INT, WORDS);
      for (int round = -rounds; round < rounds; round++) {
        long start = System.nanoTime();
        record(commands, type, clear, buffer, count, hasBarriers);
        commands.commit();
        long recorded = System.nanoTime();
        commands.await();
        long done = System.nanoTime();
        if (round >= 0) {
          recording[round] = (recorded - start) / 1e3 / NUM_DISPATCHES;
          gpu[round] = commands.gpuSeconds() * 1e6 / NUM_DISPATCHES;
          whole[round] = (done - start) / 1e3 / NUM_DISPATCHES;
        }
      }
    }
    return new Times(median(recording), median(gpu), median(whole));
  }

  private static void record(
      CommandBuffer commands,
      DispatchType type,
      ComputePipeline clear,
      MetalBuffer buffer,
      MemorySegment count,
      boolean hasBarriers) {
    commands.begin();
    ComputeEncoder encoder = commands.encoder(type);
    encoder.setPipeline(clear);
    encoder.setBytes(1, count, 0, Integer.BYTES);
    for (int i = 0; i < NUM_DISPATCHES; i++) {
      if (hasBarriers && i > 0) {
        encoder.barrier();
      }
      // Each clears words of its own, so that nothing is in another's way.
      encoder.setBuffer(0, buffer, (long) i * WORDS * WORD_BYTES);
      encoder.dispatch(1, 1, 1, WORDS, 1, 1);
    }
    encoder.end();
  }

  private static double median(double[] values) {
    Arrays.sort(values);
    return values[values.length / 2];
  }
}
