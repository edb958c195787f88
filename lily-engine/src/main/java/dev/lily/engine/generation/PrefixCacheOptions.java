package dev.lily.engine.generation;

import org.jspecify.annotations.Nullable;

/**
 * How much is kept of what was read, so that prompts that begin alike are not read again.
 *
 * @param bytes most bytes that snapshots and the KV pages they refer to may take; 0 turns the cache
 *     off
 * @param snapshotBytes what the recurrent state of one snapshot takes
 * @param pageBytes what a KV page takes
 * @param interval prompt tokens after which a snapshot is made wherever they are; 0 for none
 * @param pinsFirstMessage whether snapshots behind first messages leave after all others
 * @param disk where snapshots are kept on disk; {@code null} for nowhere
 */
public record PrefixCacheOptions(
    long bytes,
    long snapshotBytes,
    long pageBytes,
    int interval,
    boolean pinsFirstMessage,
    @Nullable DiskCacheOptions disk) {
  /** No cache. */
  public static final PrefixCacheOptions OFF = new PrefixCacheOptions(0, 0, 0, 0, false);

  public PrefixCacheOptions {
    if (bytes < 0 || snapshotBytes < 0 || pageBytes < 0 || interval < 0) {
      throw new IllegalArgumentException(
          "bytes %d, snapshotBytes %d, pageBytes %d and interval %d must not be negative"
              .formatted(bytes, snapshotBytes, pageBytes, interval));
    }
  }

  /** In memory alone. */
  public PrefixCacheOptions(
      long bytes, long snapshotBytes, long pageBytes, int interval, boolean pinsFirstMessage) {
    this(bytes, snapshotBytes, pageBytes, interval, pinsFirstMessage, null);
  }
}
