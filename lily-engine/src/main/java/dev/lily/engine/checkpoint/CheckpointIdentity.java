package dev.lily.engine.checkpoint;

import dev.lily.engine.checkpoint.CheckpointException.Kind;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;

/**
 * Tells checkpoints apart without reading gigabytes: by {@code config.json} and {@code
 * tokenizer.json} whole, and of every safetensors file by its name, size, time of change, beginning
 * and samples. The samples tell files apart that are alike from outside, the time one that was
 * changed where no sample lies. A copy with other times counts as another checkpoint.
 */
public final class CheckpointIdentity {
  private static final int SAMPLES = 256;
  private static final int SAMPLE_BYTES = 4096;

  private CheckpointIdentity() {}

  /**
   * Identifies a checkpoint.
   *
   * @return 64 hexadecimal digits
   * @throws CheckpointException if a file cannot be read
   */
  public static String of(Path directory) {
    try {
      MessageDigest digest = MessageDigest.getInstance("SHA-256");
      for (String name : List.of("config.json", "tokenizer.json")) {
        Path file = directory.resolve(name);
        add(digest, name);
        if (Files.exists(file)) {
          digest.update(MessageDigest.getInstance("SHA-256").digest(Files.readAllBytes(file)));
        }
      }
      for (Path shard : shards(directory)) {
        addShard(digest, shard);
      }
      return HexFormat.of().formatHex(digest.digest());
    } catch (IOException e) {
      throw new CheckpointException(
          Kind.NOT_FOUND,
          directory,
          "A file of the checkpoint cannot be read (%s)".formatted(e),
          e);
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("Every Java runtime has SHA-256", e);
    }
  }

  private static void add(MessageDigest digest, String word) {
    digest.update((word + "\n").getBytes(StandardCharsets.UTF_8));
  }

  private static List<Path> shards(Path directory) throws IOException {
    List<Path> shards = new ArrayList<>();
    try (DirectoryStream<Path> files = Files.newDirectoryStream(directory, "*.safetensors")) {
      files.forEach(shards::add);
    } catch (DirectoryIteratorException e) {
      throw e.getCause();
    }
    Collections.sort(shards);
    return shards;
  }

  private static void addShard(MessageDigest digest, Path shard) throws IOException {
    try (FileChannel channel = FileChannel.open(shard, StandardOpenOption.READ)) {
      long size = channel.size();
      add(digest, String.valueOf(shard.getFileName()));
      add(digest, size + " " + Files.getLastModifiedTime(shard).toMillis());
      ByteBuffer sample = ByteBuffer.allocate(SAMPLE_BYTES);
      long last = Math.max(0, size - SAMPLE_BYTES);
      for (int i = 0; i < SAMPLES; i++) {
        sample.clear();
        long at = last / (SAMPLES - 1) * i;
        while (sample.hasRemaining() && channel.read(sample, at + sample.position()) > 0) {}
        digest.update(sample.flip());
      }
    }
  }
}
