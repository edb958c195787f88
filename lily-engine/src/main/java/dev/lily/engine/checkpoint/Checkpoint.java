package dev.lily.engine.checkpoint;

import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import tools.jackson.databind.JsonNode;

/**
 * A model directory: {@code config.json}, optional {@code generation_config.json}, and one or more
 * safetensors shards, mapped read-only and never read whole. Everything is validated on {@link
 * #open}; files are untrusted input. Immutable and thread-safe until closed.
 */
public final class Checkpoint implements AutoCloseable {

  private Checkpoint() {}

  /**
   * Opens and validates a directory.
   *
   * @throws CheckpointException naming file, tensor, value, rule and remedy
   */
  public static Checkpoint open(Path directory) {
    throw new UnsupportedOperationException(directory.toString());
  }

  public Path directory() {
    throw new UnsupportedOperationException();
  }

  /** The parsed {@code config.json}. */
  public JsonNode config() {
    throw new UnsupportedOperationException();
  }

  /** The parsed {@code generation_config.json}; an empty object if the file is absent. */
  public JsonNode generationConfig() {
    throw new UnsupportedOperationException();
  }

  /** The quantisation block; empty for an unquantised checkpoint. */
  public Optional<Quantization> quantization() {
    throw new UnsupportedOperationException();
  }

  /** Names of all tensors in all shards. */
  public Set<String> tensorNames() {
    throw new UnsupportedOperationException();
  }

  /**
   * A tensor by name.
   *
   * @throws CheckpointException if there is none
   */
  public TensorEntry tensor(String name) {
    throw new UnsupportedOperationException(name);
  }

  /** The mapped shards, whole. */
  public List<MemorySegment> mappings() {
    throw new UnsupportedOperationException();
  }

  /** Oddities that do not prevent use, one sentence each (for the log). */
  public List<String> notes() {
    throw new UnsupportedOperationException();
  }

  /** Unmaps the shards. No tensor may be in use. */
  @Override
  public void close() {
    throw new UnsupportedOperationException();
  }
}
