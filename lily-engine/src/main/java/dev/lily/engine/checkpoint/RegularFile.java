package dev.lily.engine.checkpoint;

import dev.lily.engine.checkpoint.CheckpointException.Kind;
import java.nio.file.Files;
import java.nio.file.Path;

/** Refuses what cannot be opened as a file, before a pipe or device is opened by mistake. */
final class RegularFile {
  private RegularFile() {}

  /** Passes for a regular file or a symbolic link to one, as in the Hugging Face cache. */
  static void require(Path file) {
    if (Files.isRegularFile(file)) {
      return;
    }
    String message =
        Files.exists(file)
            ? "This is not a regular file"
            : Files.isSymbolicLink(file)
                ? "The link points to a file that does not exist. Repeat the download"
                : "No such file. Is the download complete?";
    throw new CheckpointException(Kind.NOT_FOUND, file, message);
  }
}
