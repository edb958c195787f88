package dev.lily.engine.generation;

import dev.lily.engine.generation.disk.CacheDirectory;
import dev.lily.engine.generation.disk.DiskEntry;
import dev.lily.engine.generation.disk.DiskWorker;
import dev.lily.engine.generation.disk.EntryShape;
import java.io.IOException;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The directory, the thread that works in it, and what both sides of the disk tier have done there.
 * Engine thread only.
 *
 * @param shape how the states' bytes are cut
 */
record EntryFiles(
    CacheDirectory directory, EntryShape shape, DiskWorker worker, DiskCounters counters) {
  private static final Logger log = LoggerFactory.getLogger(EntryFiles.class);

  /** Has files deleted, in this order. */
  void delete(List<DiskEntry> entries) {
    for (DiskEntry entry : entries) {
      worker.submit(
          () -> {
            try {
              directory.delete(entry);
            } catch (IOException e) {
              counters.countFailures(1);
              log.warn("The prefix cache's file {} could not be deleted: {}", entry.file(), e);
            }
          });
    }
  }

  /** Notes on the disk that entries were used, the first one longest ago. */
  void touch(List<DiskEntry> entries) {
    Instant now = Instant.now();
    worker.submit(
        () -> {
          long later = entries.size();
          for (DiskEntry entry : entries) {
            try {
              directory.touch(entry, FileTime.from(now.minusNanos(1000 * --later)));
            } catch (IOException e) {
              log.debug("The prefix cache's file {} has no new time: {}", entry.file(), e);
            }
          }
        });
  }

  /** Says what is wrong, once until all is well again. */
  void problem(String sentence) {
    if (counters.problem().isEmpty()) {
      log.warn("{}", sentence);
    }
    counters.problem(sentence);
  }

  /** Ends the thread and unlocks the directory, in at most twice the time. */
  void close(long nanos) {
    if (!worker.close(nanos)) {
      log.warn("The disk does not answer; {} stays locked", directory.path());
      return;
    }
    try {
      directory.close();
    } catch (IOException e) {
      log.warn("{} could not be unlocked: {}", directory.path(), e.getMessage());
    }
  }
}
