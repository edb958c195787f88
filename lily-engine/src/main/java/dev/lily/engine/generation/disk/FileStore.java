package dev.lily.engine.generation.disk;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.SeekableByteChannel;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Instant;
import java.util.Set;

/** What is asked of the file system for the files of entries. Tests have one that fails. */
public interface FileStore {
  /** The system's own. */
  FileStore SYSTEM = new FileStore() {};

  /** Makes a new file that only its owner may read, and opens it for writing. */
  default SeekableByteChannel create(Path file) throws IOException {
    FileAttribute<?>[] attributes =
        file.getFileSystem().supportedFileAttributeViews().contains("posix")
            ? new FileAttribute<?>[] {
              PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"))
            }
            : new FileAttribute<?>[0];
    return FileChannel.open(
        file,
        Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS),
        attributes);
  }

  /** Opens a file for reading; never what a link leads to. */
  default SeekableByteChannel open(Path file) throws IOException {
    return FileChannel.open(file, StandardOpenOption.READ, LinkOption.NOFOLLOW_LINKS);
  }

  /** Has the bytes of a file reach the disk. */
  default void force(SeekableByteChannel channel) throws IOException {
    if (channel instanceof FileChannel file) {
      file.force(false);
    }
  }

  /** Gives a file another name in its directory, at once or not at all. */
  default void rename(Path file, Path name) throws IOException {
    Files.move(file, name, StandardCopyOption.ATOMIC_MOVE);
  }

  /** Deletes a file, or a link, if it is there. */
  default void delete(Path file) throws IOException {
    Files.deleteIfExists(file);
  }

  /** Sets when a file counts as used. */
  default void touch(Path file, Instant time) throws IOException {
    Files.setLastModifiedTime(file, FileTime.from(time));
  }

  /** Bytes that may still be written in a directory. */
  default long usableBytes(Path directory) throws IOException {
    return Files.getFileStore(directory).getUsableSpace();
  }
}
