package dev.lily.engine.generation;

import dev.lily.engine.generation.disk.FileStore;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SeekableByteChannel;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.List;
import java.util.concurrent.AbstractExecutorService;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A disk whose work the test does, a job at a time or at once as it is asked for, and which fails
 * as the test says. The files are real.
 */
final class ManualDisk extends AbstractExecutorService implements FileStore {
  private final ArrayDeque<Runnable> jobs = new ArrayDeque<>();
  private boolean held;
  private boolean shutdown;
  private @Nullable IOException createFailure;
  private @Nullable IOException writeFailure;
  private @Nullable IOException readFailure;
  private @Nullable IOException renameFailure;
  private long usableBytes = Long.MAX_VALUE;

  DiskCacheOptions options(Path directory, long maxBytes, String model) {
    shutdown = false;
    return new DiskCacheOptions(directory, maxBytes, model, this, () -> this);
  }

  /** Lets jobs wait until {@link #run}. */
  void hold() {
    held = true;
  }

  /** Does the jobs that wait, and later ones at once. */
  void release() {
    held = false;
    while (run()) {}
  }

  /** Does the job that has waited longest; whether there was one. */
  boolean run() {
    Runnable job = jobs.poll();
    if (job != null) {
      job.run();
    }
    return job != null;
  }

  int waiting() {
    return jobs.size();
  }

  void failCreating(@Nullable IOException failure) {
    createFailure = failure;
  }

  void failWriting(@Nullable IOException failure) {
    writeFailure = failure;
  }

  void failReading(@Nullable IOException failure) {
    readFailure = failure;
  }

  void failRenaming(@Nullable IOException failure) {
    renameFailure = failure;
  }

  void usableBytes(long value) {
    usableBytes = value;
  }

  private static void fail(@Nullable IOException failure) throws IOException {
    if (failure != null) {
      throw failure;
    }
  }

  @Override
  public SeekableByteChannel create(Path file) throws IOException {
    fail(createFailure);
    return new Channel(FileStore.super.create(file));
  }

  @Override
  public SeekableByteChannel open(Path file) throws IOException {
    return new Channel(FileStore.super.open(file));
  }

  @Override
  public void rename(Path file, Path name) throws IOException {
    fail(renameFailure);
    FileStore.super.rename(file, name);
  }

  @Override
  public long usableBytes(Path directory) {
    return usableBytes;
  }

  private final class Channel implements SeekableByteChannel {
    private final SeekableByteChannel real;

    Channel(SeekableByteChannel real) {
      this.real = real;
    }

    @Override
    public int read(ByteBuffer target) throws IOException {
      fail(readFailure);
      return real.read(target);
    }

    @Override
    public int write(ByteBuffer source) throws IOException {
      fail(writeFailure);
      return real.write(source);
    }

    @Override
    public long position() throws IOException {
      return real.position();
    }

    @Override
    public SeekableByteChannel position(long position) throws IOException {
      real.position(position);
      return this;
    }

    @Override
    public long size() throws IOException {
      return real.size();
    }

    @Override
    public SeekableByteChannel truncate(long size) throws IOException {
      real.truncate(size);
      return this;
    }

    @Override
    public boolean isOpen() {
      return real.isOpen();
    }

    @Override
    public void close() throws IOException {
      real.close();
    }
  }

  // The thread.

  @Override
  public void execute(Runnable job) {
    if (held) {
      jobs.add(job);
    } else {
      job.run();
    }
  }

  @Override
  public void shutdown() {
    shutdown = true;
  }

  @Override
  public List<Runnable> shutdownNow() {
    shutdown = true;
    List<Runnable> dropped = List.copyOf(jobs);
    jobs.clear();
    return dropped;
  }

  @Override
  public boolean isShutdown() {
    return shutdown;
  }

  @Override
  public boolean isTerminated() {
    return shutdown && jobs.isEmpty();
  }

  @Override
  public boolean awaitTermination(long timeout, TimeUnit unit) {
    return isTerminated();
  }
}
