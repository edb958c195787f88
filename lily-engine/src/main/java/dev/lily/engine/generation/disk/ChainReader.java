package dev.lily.engine.generation.disk;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads an entry: its slot, and its pages from its own file and those of the entries it continues.
 * One file is open at a time, so pages are best read in their order. Used by one thread, but for
 * {@link #failure}.
 */
public final class ChainReader implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(ChainReader.class);

  /**
   * Why an entry could not be read.
   *
   * @param culprit the entry whose file is of no use
   */
  public record Failure(DiskEntry culprit, Exception cause) {}

  private final CacheDirectory directory;
  private final DiskEntry entry;
  private final int[] tokens;
  private @Nullable EntryReader current;
  private @Nullable DiskEntry currentEntry;
  private volatile @Nullable Failure failure;

  ChainReader(CacheDirectory directory, DiskEntry entry, int[] tokens) {
    this.directory = directory;
    this.entry = entry;
    this.tokens = tokens;
  }

  /** Why the entry cannot be read; {@code null} as long as it can. Any thread. */
  public @Nullable Failure failure() {
    return failure;
  }

  /**
   * Reads a page of the sequence.
   *
   * @return whether the target holds what was written; if not, see {@link #failure}
   */
  public boolean readPage(int page, MemorySegment target) {
    DiskEntry holder = entry;
    while (page < holder.firstPage() && holder.parent() != null) {
      holder = holder.parent();
    }
    return read(holder, page - holder.firstPage(), target);
  }

  /** Reads a slice of the recurrent slot, as {@link #readPage}. */
  public boolean readSlice(int slice, MemorySegment target) {
    int pages = directory.shape().pages(entry.position()) - entry.firstPage();
    return read(entry, pages + slice, target);
  }

  private boolean read(DiskEntry holder, int piece, MemorySegment target) {
    if (failure != null) {
      return false;
    }
    try {
      EntryReader reader = current;
      if (reader == null || !holder.equals(currentEntry)) {
        close();
        reader = open(holder);
        current = reader;
        currentEntry = holder;
      }
      reader.read(piece, target);
      return true;
    } catch (IOException | RuntimeException e) {
      failure = new Failure(holder, e);
      return false;
    }
  }

  private EntryReader open(DiskEntry holder) throws IOException {
    Path file = holder.file();
    EntryReader reader =
        EntryReader.open(directory.files(), file, directory.key(), directory.shape());
    boolean right = false;
    try {
      int position = holder.position();
      int compared = Math.min(position, tokens.length);
      EntryHeader.require(
          reader.header().position() == position
              && reader.header().firstPage() == holder.firstPage()
              && Arrays.mismatch(reader.tokens(), 0, compared, tokens, 0, compared) < 0,
          "it is another entry than it was");
      right = true;
      return reader;
    } finally {
      if (!right) {
        reader.close();
      }
    }
  }

  @Override
  public void close() {
    try {
      if (current != null) {
        current.close();
      }
    } catch (IOException e) {
      log.debug("A file of the prefix cache could not be closed: {}", e.getMessage());
    } finally {
      current = null;
    }
  }
}
