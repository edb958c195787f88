package dev.lily.metal.device;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import org.junit.jupiter.api.Test;

/** What a recorded dispatch costs the host. */
class HostCostTest extends MetalTestCase {
  private static final int NUM_DISPATCHES = 350;
  private static final int WARM_UP_STEPS = 400;
  private static final int MAX_ROUNDS = 200;

  private BufferBindings bindings;

  /** A step as a decode pass makes it: pipeline, bindings, bytes, dispatch, barrier. */
  private void step() {
    ComputeEncoder encoder = gpu.begin(DispatchType.CONCURRENT);
    for (int i = 0; i < NUM_DISPATCHES; i++) {
      encoder.setPipeline(gpu.scale);
      encoder.setBuffers(bindings);
      encoder.setBuffer(0, gpu.a, 0);
      encoder.setBufferOffset(0, 128);
      encoder.setBytes(1, gpu.factor, 0, Float.BYTES);
      encoder.setThreadgroupMemory(0, 64);
      encoder.dispatch(1, 1, 1, 32, 1, 1);
      encoder.barrier();
    }
    encoder.end();
    gpu.commands.commit();
  }

  private void prepare() {
    metal.set("run", 0);
    bindings = new BufferBindings(gpu.device, 2, 3);
    bindings.set(0, gpu.b, 0);
    bindings.set(1, gpu.c, 0);
    bindings.set(2, gpu.d, 0);
    for (int i = 0; i < WARM_UP_STEPS; i++) {
      step();
      gpu.commands.await();
    }
  }

  @Test
  void allocatesNothingInSteadyState() {
    prepare();
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    long allocated = Long.MAX_VALUE;
    // The JIT compiles in the background: steady state is reached when a round allocates nothing.
    for (int round = 0; round < MAX_ROUNDS && allocated > 0; round++) {
      long before = threads.getCurrentThreadAllocatedBytes();
      for (int i = 0; i < 20; i++) {
        step();
        gpu.commands.await();
      }
      allocated = threads.getCurrentThreadAllocatedBytes() - before;
    }
    assertThat(allocated).as("bytes allocated by 20 steps of 350 dispatches").isZero();
  }

  @Test
  void printsTheCostOfAMessage() {
    prepare();
    long messages = metal.get("messages");
    step();
    messages = metal.get("messages") - messages;
    gpu.commands.await();
    double[] micros = new double[51];
    for (int i = 0; i < micros.length; i++) {
      long start = System.nanoTime();
      step();
      micros[i] = (System.nanoTime() - start) / 1e3;
      gpu.commands.await();
    }
    Arrays.sort(micros);
    double median = micros[micros.length / 2];
    System.out.printf(
        "Metal host path on the double: %d messages for %d dispatches, %.0f us a step (median),"
            + " %.3f us a message%n",
        messages, NUM_DISPATCHES, median, median / messages);
    assertThat(messages).isEqualTo(NUM_DISPATCHES * 8L + 4);
  }
}
