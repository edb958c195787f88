package dev.lily.engine.checkpoint;

import static dev.lily.engine.checkpoint.MessageText.listed;
import static dev.lily.engine.checkpoint.MessageText.quoted;

import dev.lily.engine.checkpoint.CheckpointException.Kind;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import tools.jackson.databind.JsonNode;

/**
 * Which files hold a checkpoint's tensors, and which tensors are expected in them. In order of
 * preference: what {@code model.safetensors.index.json} names; {@code model.safetensors}; all files
 * of a complete set {@code model-00001-of-0000N.safetensors}.
 *
 * @param source the index, or the directory if there is none; named in messages
 * @param files paths of the shards
 * @param expected shard by tensor name, as the index has it; empty without an index
 * @param totalBytes size of all tensors as the index has it
 */
record ShardSet(
    Path source, List<Path> files, SortedMap<String, Path> expected, OptionalLong totalBytes) {
  private static final String INDEX = "model.safetensors.index.json";
  private static final String SINGLE = "model.safetensors";
  private static final int MAX_INDEX_BYTES = 16 << 20;
  private static final int MAX_SHARDS = 1000;
  private static final Pattern NUMBERED =
      Pattern.compile("model-([0-9]{5})-of-([0-9]{5})\\.safetensors");
  private static final Pattern PLAIN_FILE_NAME =
      Pattern.compile("[A-Za-z0-9_][A-Za-z0-9_.+=@ -]{0,200}\\.safetensors");

  ShardSet {
    files = List.copyOf(files);
    expected = Collections.unmodifiableSortedMap(new TreeMap<>(expected));
  }

  /**
   * Finds the shards of a directory; all of them exist.
   *
   * @throws CheckpointException listing what is missing
   */
  static ShardSet find(Path directory) {
    Path index = directory.resolve(INDEX);
    if (Files.exists(index, LinkOption.NOFOLLOW_LINKS)) {
      return ofIndex(directory, index);
    }
    if (Files.exists(directory.resolve(SINGLE), LinkOption.NOFOLLOW_LINKS)) {
      return withoutIndex(directory, List.of(SINGLE));
    }
    return withoutIndex(directory, numberedShards(directory));
  }

  /** Checks and maps all shards into an arena that the caller closes. */
  List<SafetensorsFile> open(Arena arena) {
    List<SafetensorsFile> shards = new ArrayList<>();
    int numTensors = 0;
    for (Path file : files) {
      SafetensorsFile shard = SafetensorsFile.open(file, arena);
      numTensors += shard.tensors().size();
      if (numTensors > SafetensorsHeader.MAX_TENSORS) {
        throw corrupt(
            source,
            "The shards hold more than %d tensors".formatted(SafetensorsHeader.MAX_TENSORS));
      }
      shards.add(shard);
    }
    return shards;
  }

  /**
   * Brings the tensors of all shards together and compares them with the index.
   *
   * @param shards opened, in the order of {@link #files}
   * @param notes receives a sentence on what is ignored
   */
  SortedMap<String, TensorEntry> collect(List<SafetensorsFile> shards, List<String> notes) {
    SortedMap<String, TensorEntry> tensors = new TreeMap<>();
    long bytes = 0;
    for (SafetensorsFile shard : shards) {
      for (TensorEntry tensor : shard.tensors()) {
        TensorEntry other = tensors.put(tensor.name(), tensor);
        if (other != null) {
          throw corrupt(
              source,
              "Tensor %s is in two shards, %s and %s. Fetch the files again"
                  .formatted(
                      quoted(tensor.name()), fileName(other.file()), fileName(tensor.file())));
        }
        bytes += tensor.data().byteSize();
      }
    }
    if (!expected.isEmpty()) {
      requireExpected(tensors);
      dropUnexpected(tensors, notes);
    }
    if (totalBytes.isPresent() && totalBytes.getAsLong() != bytes) {
      notes.add(
          "%s: total_size is %d, but the tensors take %d bytes"
              .formatted(source, totalBytes.getAsLong(), bytes));
    }
    return tensors;
  }

  private void requireExpected(Map<String, TensorEntry> tensors) {
    SortedSet<String> missing = new TreeSet<>();
    expected.forEach(
        (name, file) -> {
          TensorEntry tensor = tensors.get(name);
          if (tensor == null || !tensor.file().equals(file)) {
            missing.add(name);
          }
        });
    if (!missing.isEmpty()) {
      throw corrupt(
          source,
          "%d of %d tensors are not in the shards that the index names: %s. The files are not of one download: fetch them again"
              .formatted(missing.size(), expected.size(), listed(missing)));
    }
  }

  private void dropUnexpected(Map<String, TensorEntry> tensors, List<String> notes) {
    SortedSet<String> extra = new TreeSet<>(tensors.keySet());
    extra.removeAll(expected.keySet());
    if (!extra.isEmpty()) {
      tensors.keySet().removeAll(extra);
      notes.add(
          "%s: ignoring %d tensors of the shards that the index does not name: %s"
              .formatted(source, extra.size(), listed(extra)));
    }
  }

  private static ShardSet ofIndex(Path directory, Path index) {
    JsonNode root = JsonFile.readObject(index, MAX_INDEX_BYTES);
    JsonNode weightMap = root.path("weight_map");
    if (!weightMap.isObject() || weightMap.isEmpty()) {
      throw corrupt(
          index, "The index must have an object 'weight_map' of tensors. Fetch the file again");
    }
    if (weightMap.size() > SafetensorsHeader.MAX_TENSORS) {
      throw corrupt(
          index, "The index names more than %d tensors".formatted(SafetensorsHeader.MAX_TENSORS));
    }
    SortedMap<String, Path> expected = new TreeMap<>();
    SortedSet<String> names = new TreeSet<>();
    for (Map.Entry<String, JsonNode> property : weightMap.properties()) {
      String name = requireShardName(index, property.getKey(), property.getValue());
      names.add(name);
      if (names.size() > MAX_SHARDS) {
        throw corrupt(index, "The index names more than %d shards".formatted(MAX_SHARDS));
      }
      expected.put(property.getKey(), directory.resolve(name));
    }
    List<Path> files = requireAll(directory, index, names);
    JsonNode total = root.path("metadata").path("total_size");
    return new ShardSet(
        index,
        files,
        expected,
        total.isIntegralNumber() && total.canConvertToLong()
            ? OptionalLong.of(total.asLong())
            : OptionalLong.empty());
  }

  /** A shard must lie in the directory itself, whatever the index says. */
  private static String requireShardName(Path index, String tensor, JsonNode file) {
    if (!file.isString()
        || !PLAIN_FILE_NAME.matcher(file.asString()).matches()
        || file.asString().contains("..")) {
      throw corrupt(
          index,
          "Tensor %s is said to lie in %s; a shard must be a plain file name that ends with '.safetensors', without directories"
              .formatted(
                  quoted(tensor), quoted(file.isString() ? file.asString() : file.toString())));
    }
    return file.asString();
  }

  private static ShardSet withoutIndex(Path directory, List<String> names) {
    List<Path> files = names.stream().map(directory::resolve).toList();
    return new ShardSet(directory, files, new TreeMap<>(), OptionalLong.empty());
  }

  private static List<String> numberedShards(Path directory) {
    SortedSet<String> present = new TreeSet<>();
    SortedSet<String> totals = new TreeSet<>();
    try (DirectoryStream<Path> children = Files.newDirectoryStream(directory)) {
      for (Path child : children) {
        Matcher name = NUMBERED.matcher(fileName(child));
        if (name.matches()) {
          present.add(name.group());
          totals.add(name.group(2));
        }
      }
    } catch (IOException | DirectoryIteratorException e) {
      throw new CheckpointException(
          Kind.NOT_FOUND, directory, "The directory cannot be read (%s)".formatted(e), e);
    }
    if (totals.isEmpty()) {
      throw new CheckpointException(
          Kind.NOT_FOUND,
          directory,
          "No weights here: neither %s nor %s nor numbered shards. Is this the model's directory, and is the download complete?"
              .formatted(INDEX, SINGLE));
    }
    int total = Integer.parseInt(totals.getFirst());
    if (totals.size() > 1 || total > MAX_SHARDS) {
      throw corrupt(
          directory,
          "Without %s, the shards %s do not tell which belong together: fetch the index"
              .formatted(INDEX, listed(present)));
    }
    SortedSet<String> names = new TreeSet<>();
    for (int i = 1; i <= total; i++) {
      names.add("model-%05d-of-%05d.safetensors".formatted(i, total));
    }
    names.addAll(present);
    requireAll(directory, directory, names);
    return List.copyOf(names);
  }

  private static List<Path> requireAll(Path directory, Path source, SortedSet<String> names) {
    List<Path> files = new ArrayList<>();
    SortedSet<String> missing = new TreeSet<>();
    SortedSet<String> partial = new TreeSet<>();
    for (String name : names) {
      Path file = directory.resolve(name);
      files.add(file);
      if (!Files.exists(file)) {
        missing.add(name);
        if (Files.exists(directory.resolve(name + ".incomplete"))) {
          partial.add(name + ".incomplete");
        }
      }
    }
    if (!missing.isEmpty()) {
      throw new CheckpointException(
          Kind.NOT_FOUND,
          source,
          "%d of %d shards are missing: %s%s. The download was not finished: repeat it"
              .formatted(
                  missing.size(),
                  names.size(),
                  listed(missing),
                  partial.isEmpty() ? "" : " (but there is " + listed(partial) + ")"));
    }
    return files;
  }

  private static String fileName(Path path) {
    return String.valueOf(path.getFileName());
  }

  private static CheckpointException corrupt(Path file, String message) {
    return new CheckpointException(Kind.CORRUPT, file, message);
  }
}
