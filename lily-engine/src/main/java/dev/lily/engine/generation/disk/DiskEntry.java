package dev.lily.engine.generation.disk;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * An entry that has a file. Immutable.
 *
 * @param file where it is
 * @param bytes of the file
 * @param parent has the pages before {@code firstPage}; {@code null} if there are none
 * @param firstPage the first page in the file
 * @param position tokens the state has seen; 0 for a file of another model or format, of which only
 *     the size is known
 */
public record DiskEntry(
    Path file, long bytes, @Nullable DiskEntry parent, int firstPage, int position) {

  /** Its file's name. */
  String name() {
    return String.valueOf(file.getFileName());
  }

  /** The entry and all that it continues, the shortest last. */
  public List<DiskEntry> chain() {
    List<DiskEntry> chain = new ArrayList<>();
    for (DiskEntry entry = this; entry != null; entry = entry.parent) {
      chain.add(entry);
    }
    return chain;
  }

  /** Whether another entry's file is needed to read this one. */
  public boolean needs(DiskEntry other) {
    for (DiskEntry entry = this; entry != null; entry = entry.parent) {
      if (entry.equals(other)) {
        return true;
      }
    }
    return false;
  }

  // Two entries are the same only if they are one: comparing whole chains would be slow.

  @Override
  public boolean equals(@Nullable Object other) {
    return this == other;
  }

  @Override
  public int hashCode() {
    return System.identityHashCode(this);
  }
}
