package dev.lily.metal.device;

import java.lang.foreign.Arena;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.extension.ExtendWith;

/** Tests against the double with a {@link MetalFixture}. */
@ExtendWith(MetalDoubleExtension.class)
abstract class MetalTestCase {
  final Arena arena = Arena.ofConfined();
  MetalDouble metal;
  MetalFixture gpu;

  @BeforeEach
  void open(MetalDouble installed) {
    metal = installed;
    gpu = new MetalFixture(arena);
  }

  @AfterEach
  void close() {
    gpu.close();
    arena.close();
  }
}
