package dev.lily.engine.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CheckpointIdentityTest {
  private static final FileTime TIME = FileTime.fromMillis(1_000_000);

  @TempDir private Path directory;

  @BeforeEach
  void write() throws IOException {
    Files.writeString(directory.resolve("config.json"), "{}");
    Files.writeString(directory.resolve("tokenizer.json"), "{}");
    writeShard("model.safetensors", 3 << 20, -1);
  }

  private void writeShard(String name, int size, int changed) throws IOException {
    byte[] bytes = new byte[size];
    if (changed >= 0) {
      bytes[changed] = 1;
    }
    Path shard = Files.write(directory.resolve(name), bytes);
    Files.setLastModifiedTime(shard, TIME);
  }

  @Test
  void isTheSameAsLongAsNothingChanges() throws IOException {
    String identity = CheckpointIdentity.of(directory);
    assertThat(identity).matches("[0-9a-f]{64}");
    Files.writeString(directory.resolve("README.md"), "unimportant");
    assertThat(CheckpointIdentity.of(directory)).isEqualTo(identity);
  }

  @Test
  void isAnotherOneWithAnyFileOfTheModelChanged() throws IOException {
    Set<String> identities = new HashSet<>();
    assertThat(identities.add(CheckpointIdentity.of(directory))).isTrue();
    Files.writeString(directory.resolve("config.json"), "{ }");
    assertThat(identities.add(CheckpointIdentity.of(directory))).isTrue();
    Files.writeString(directory.resolve("tokenizer.json"), "{ }");
    assertThat(identities.add(CheckpointIdentity.of(directory))).isTrue();
    writeShard("model.safetensors", 3 << 20, 0);
    assertThat(identities.add(CheckpointIdentity.of(directory))).as("first byte").isTrue();
    writeShard("model.safetensors", 3 << 20, 5000 + (3 << 19));
    Files.setLastModifiedTime(directory.resolve("model.safetensors"), FileTime.fromMillis(2));
    assertThat(identities.add(CheckpointIdentity.of(directory))).as("time").isTrue();
    writeShard("model.safetensors", (3 << 20) + 1, -1);
    assertThat(identities.add(CheckpointIdentity.of(directory))).as("size").isTrue();
    writeShard("model-2.safetensors", 10, -1);
    assertThat(identities.add(CheckpointIdentity.of(directory))).as("another shard").isTrue();
  }
}
