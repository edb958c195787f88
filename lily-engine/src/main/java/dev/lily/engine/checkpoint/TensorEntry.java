package dev.lily.engine.checkpoint;

import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;

/**
 * One tensor of a checkpoint.
 *
 * @param name name in the header
 * @param dtype safetensors dtype name, for example {@code BF16}, {@code F32}, {@code U32}
 * @param shape dimensions, outermost first
 * @param data the bytes, little-endian, row-major, possibly unaligned; read-only slice of the
 *     mapping, valid until the checkpoint is closed
 * @param file the shard
 */
public record TensorEntry(
    String name, String dtype, List<Long> shape, MemorySegment data, Path file) {
  public TensorEntry {
    shape = List.copyOf(shape);
  }
}
