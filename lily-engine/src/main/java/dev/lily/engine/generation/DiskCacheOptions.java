package dev.lily.engine.generation;

import dev.lily.engine.generation.disk.DiskWorker;
import dev.lily.engine.generation.disk.FileStore;
import java.nio.file.Path;
import java.util.concurrent.ExecutorService;
import java.util.function.Supplier;

/**
 * Where the prefix cache keeps on disk what does not fit into memory or is to outlive the process.
 *
 * @param directory made if it is not there; one process at a time uses it
 * @param maxBytes most bytes of all files
 * @param model what identifies weights and tokenizer: entries of others are not used
 * @param files the file system
 * @param thread makes what runs the reading and writing, one job at a time
 */
public record DiskCacheOptions(
    Path directory,
    long maxBytes,
    String model,
    FileStore files,
    Supplier<ExecutorService> thread) {

  /** On the system's own files, with a thread for them. */
  public DiskCacheOptions(Path directory, long maxBytes, String model) {
    this(directory, maxBytes, model, FileStore.SYSTEM, DiskWorker::thread);
  }
}
