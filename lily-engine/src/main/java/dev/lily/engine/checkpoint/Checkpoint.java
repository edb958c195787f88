package dev.lily.engine.checkpoint;

import static dev.lily.engine.checkpoint.MessageText.quoted;

import dev.lily.engine.checkpoint.CheckpointException.Kind;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.concurrent.atomic.AtomicBoolean;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.JsonNodeFactory;

/**
 * A model directory: {@code config.json}, optional {@code generation_config.json}, and one or more
 * safetensors shards, mapped read-only and never read whole. Everything is validated on {@link
 * #open}; files are untrusted input. Immutable and thread-safe until closed. The files must not
 * change while the checkpoint is open.
 */
public final class Checkpoint implements AutoCloseable {
  private static final String CONFIG = "config.json";
  private static final String GENERATION_CONFIG = "generation_config.json";
  private static final int MAX_CONFIG_BYTES = 4 << 20;

  private final Path directory;
  private final JsonNode config;
  private final JsonNode generationConfig;
  private final Optional<Quantization> quantization;
  private final SortedMap<String, TensorEntry> tensors;
  private final List<MemorySegment> mappings;
  private final List<String> notes;
  private final Arena arena;
  private final AtomicBoolean closed = new AtomicBoolean();

  private Checkpoint(
      Path directory,
      JsonNode config,
      JsonNode generationConfig,
      Optional<Quantization> quantization,
      SortedMap<String, TensorEntry> tensors,
      List<MemorySegment> mappings,
      List<String> notes,
      Arena arena) {
    this.directory = directory;
    this.config = config;
    this.generationConfig = generationConfig;
    this.quantization = quantization;
    this.tensors = Collections.unmodifiableSortedMap(tensors);
    this.mappings = List.copyOf(mappings);
    this.notes = List.copyOf(notes);
    this.arena = arena;
  }

  /**
   * Opens and validates a directory. The shards are those that {@code model.safetensors.index.json}
   * names; without it, {@code model.safetensors} or a complete set of {@code
   * model-00001-of-0000N.safetensors}. Files may be symbolic links. Checked is all that needs no
   * knowledge of a model family: the files themselves, their agreement with the index, and that
   * quantised tensors have the shapes the quantisation block asks for. After an exception nothing
   * stays mapped.
   *
   * @throws CheckpointException naming file, tensor, value, rule and remedy
   */
  public static Checkpoint open(Path directory) {
    requireModelDirectory(directory);
    List<String> notes = new ArrayList<>();
    Path configFile = directory.resolve(CONFIG);
    JsonNode config = JsonFile.readObject(configFile, MAX_CONFIG_BYTES);
    Path generationConfigFile = directory.resolve(GENERATION_CONFIG);
    JsonNode generationConfig =
        Files.exists(generationConfigFile, LinkOption.NOFOLLOW_LINKS)
            ? JsonFile.readObject(generationConfigFile, MAX_CONFIG_BYTES)
            : JsonNodeFactory.instance.objectNode();
    Optional<Quantization> quantization = QuantizationReader.read(configFile, config, notes);
    ShardSet shardSet = ShardSet.find(directory);

    @SuppressWarnings("MustBeClosed") // The checkpoint closes it; on refusal, the finally below.
    Arena arena = Arena.ofShared();
    boolean opened = false;
    try {
      List<SafetensorsFile> shards = shardSet.open(arena);
      SortedMap<String, TensorEntry> tensors = shardSet.collect(shards, notes);
      QuantizedModules.check(configFile, quantization, tensors);
      Checkpoint checkpoint =
          new Checkpoint(
              directory,
              config,
              generationConfig,
              quantization,
              tensors,
              shards.stream().map(SafetensorsFile::mapping).toList(),
              notes,
              arena);
      opened = true;
      return checkpoint;
    } finally {
      if (!opened) {
        arena.close();
      }
    }
  }

  private static void requireModelDirectory(Path directory) {
    if (!Files.isDirectory(directory)) {
      throw new CheckpointException(
          Kind.NOT_FOUND,
          directory,
          Files.exists(directory)
              ? "This is a file; give the model's directory, the one that holds " + CONFIG
              : "No such directory. Fetch the model first, for example with 'hf download"
                  + " mlx-community/Qwen3.6-35B-A3B-4bit --local-dir DIRECTORY'");
    }
    if (!Files.exists(directory.resolve(CONFIG), LinkOption.NOFOLLOW_LINKS)) {
      throw new CheckpointException(
          Kind.NOT_FOUND,
          directory,
          Files.isDirectory(directory.resolve("snapshots"))
              ? "This is a repository of the Hugging Face cache; give a directory inside its"
                  + " 'snapshots'"
              : "There is no %s. Is this the model's directory, and is the download complete?"
                  .formatted(CONFIG));
    }
  }

  public Path directory() {
    return directory;
  }

  /** The parsed {@code config.json}, an object. Not copied: do not change. */
  public JsonNode config() {
    return config;
  }

  /**
   * The parsed {@code generation_config.json}; an empty object if the file is absent. Not copied:
   * do not change.
   */
  public JsonNode generationConfig() {
    return generationConfig;
  }

  /** The quantisation block; empty for an unquantised checkpoint. */
  public Optional<Quantization> quantization() {
    return quantization;
  }

  /**
   * Names of all tensors, in alphabetical order; where there is an index, of those it names. They
   * include the parts of the checkpoint that Lily does not read.
   */
  public Set<String> tensorNames() {
    return tensors.keySet();
  }

  /**
   * A tensor by name.
   *
   * @throws CheckpointException if there is none
   */
  public TensorEntry tensor(String name) {
    TensorEntry tensor = tensors.get(name);
    if (tensor == null) {
      throw new CheckpointException(
          Kind.CORRUPT,
          directory,
          "Tensor %s is missing from the %d tensors. Is this a complete download of the right model?"
              .formatted(quoted(name), tensors.size()));
    }
    return tensor;
  }

  /** The mapped shards, whole. */
  public List<MemorySegment> mappings() {
    return mappings;
  }

  /** Oddities that do not prevent use, one sentence each (for the log). */
  public List<String> notes() {
    return notes;
  }

  /**
   * Unmaps the shards; repeated calls do nothing. No tensor may be in use: access to one afterwards
   * throws {@link IllegalStateException}.
   */
  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      arena.close();
    }
  }
}
