package dev.lily.engine.generation.disk;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * The directory of the entries: {@code lily-prefixes} in the one that the user names, locked for
 * one process, with a directory for each key. Only its owner may look into it. Files that are not
 * named as ours are left alone.
 */
public final class CacheDirectory implements AutoCloseable {
  private static final String NAME = "lily-prefixes";
  private static final String LOCK = "lock";
  private static final Pattern KEY_NAME = Pattern.compile("[0-9a-f]{32}");
  private static final Pattern FILE_NAME = Pattern.compile("[0-9a-f]{32}\\.entry");
  private static final Pattern TEMPORARY_NAME = Pattern.compile("[0-9a-f]{32}\\.tmp");

  private final Path directory;
  private final String key;
  private final EntryShape shape;
  private final FileStore files;
  private final FileChannel lock;

  private CacheDirectory(
      Path directory, String key, EntryShape shape, FileStore files, FileChannel lock) {
    this.directory = directory;
    this.key = key;
    this.shape = shape;
    this.files = files;
    this.lock = lock;
  }

  /**
   * Makes the directory if need be and locks it.
   *
   * @param base what the user named; may be a link
   * @param key of model, back end and format, 64 hexadecimal digits
   * @throws IOException if it cannot be used, with a reason for the user
   */
  public static CacheDirectory open(Path base, String key, EntryShape shape, FileStore files)
      throws IOException {
    Path all = base.resolve(NAME);
    Path own = all.resolve(key.substring(0, 32));
    if (!Files.isDirectory(base)) {
      Files.createDirectories(base);
      makePrivate(base);
    }
    make(all);
    FileChannel channel = lock(all.resolve(LOCK));
    try {
      make(own);
      return new CacheDirectory(own, key, shape, files, channel);
    } catch (IOException | RuntimeException | Error e) {
      channel.close();
      throw e;
    }
  }

  private static void make(Path directory) throws IOException {
    if (!Files.isDirectory(directory, LinkOption.NOFOLLOW_LINKS)) {
      Files.createDirectory(directory);
    }
    makePrivate(directory);
  }

  private static void makePrivate(Path path) throws IOException {
    if (path.getFileSystem().supportedFileAttributeViews().contains("posix")) {
      Files.setPosixFilePermissions(path, PosixFilePermissions.fromString("rwx------"));
    }
  }

  private static FileChannel lock(Path file) throws IOException {
    FileChannel channel =
        FileChannel.open(
            file,
            Set.of(StandardOpenOption.CREATE, StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS));
    try {
      FileLock lock = channel.tryLock();
      if (lock != null) {
        return channel;
      }
    } catch (OverlappingFileLockException e) {
      channel.close();
      throw new IOException("another engine of this process uses it", e);
    } catch (IOException | RuntimeException | Error e) {
      channel.close();
      throw e;
    }
    channel.close();
    throw new IOException("another process uses it");
  }

  /** Where this key's entries are. */
  public Path path() {
    return directory;
  }

  FileStore files() {
    return files;
  }

  String key() {
    return key;
  }

  EntryShape shape() {
    return shape;
  }

  /**
   * A file that was found.
   *
   * @param tokens all that its state has seen; empty for a file of another key
   * @param lastUsed when
   */
  public record Found(DiskEntry entry, int[] tokens, FileTime lastUsed) {}

  /**
   * What is in the directory.
   *
   * @param entries usable ones and those of other keys, the one used longest ago first
   * @param deleted what was not usable and is gone, a sentence each
   */
  public record Contents(List<Found> entries, List<String> deleted) {}

  /**
   * Looks at all files. Those left over from a write, and those that are damaged, foreign or of no
   * use without a parent that is gone, are deleted.
   *
   * @throws IOException if the directory cannot be read
   */
  public Contents scan() throws IOException {
    Contents contents = new Contents(new ArrayList<>(), new ArrayList<>());
    List<Header> headers = new ArrayList<>();
    for (Path file : children(directory)) {
      if (TEMPORARY_NAME.matcher(name(file)).matches()) {
        files.delete(file);
      } else if (FILE_NAME.matcher(name(file)).matches()) {
        Header header = header(file, contents.deleted);
        if (header != null) {
          headers.add(header);
        }
      }
    }
    link(headers, contents);
    addOthers(contents);
    contents.entries.sort(Comparator.comparing(Found::lastUsed));
    return contents;
  }

  private record Header(Path file, EntryHeader header, int[] tokens, FileTime lastUsed) {}

  private @Nullable Header header(Path file, List<String> deleted) {
    if (!Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)) { // opening one may wait for ever
      delete(file, "it is no regular file", deleted);
      return null;
    }
    try (EntryReader reader = EntryReader.open(files, file, key, shape)) {
      EntryHeader header = reader.header();
      EntryHeader.require(file(header.id()).equals(file), "it has another entry's name");
      return new Header(file, header, reader.tokens(), Files.getLastModifiedTime(file));
    } catch (IOException e) {
      delete(file, String.valueOf(e.getMessage()), deleted);
      return null;
    }
  }

  private void delete(Path file, String reason, List<String> deleted) {
    try {
      files.delete(file);
      deleted.add("%s: %s".formatted(name(file), reason));
    } catch (IOException e) {
      deleted.add("%s: %s, and it cannot be deleted (%s)".formatted(name(file), reason, e));
    }
  }

  /** Finds the parents, which are shorter, before their children. */
  private void link(List<Header> headers, Contents contents) {
    headers.sort(Comparator.comparingInt(found -> found.header.position()));
    Map<String, Found> known = new HashMap<>();
    for (Header found : headers) {
      EntryHeader header = found.header;
      Found parent = known.get(header.parent());
      if (header.firstPage() > 0 && (parent == null || !isParent(parent, found))) {
        delete(found.file, "what it continues is gone", contents.deleted);
        continue;
      }
      DiskEntry entry =
          new DiskEntry(
              found.file,
              header.fileBytes(),
              parent == null ? null : parent.entry,
              header.firstPage(),
              header.position());
      Found linked = new Found(entry, found.tokens, found.lastUsed);
      known.put(header.id(), linked);
      contents.entries.add(linked);
    }
  }

  private boolean isParent(Found parent, Header child) {
    int shared = child.header.firstPage() * shape.pageTokens();
    return parent.tokens.length >= shared
        && Arrays.mismatch(parent.tokens, 0, shared, child.tokens, 0, shared) < 0;
  }

  private void addOthers(Contents contents) throws IOException {
    for (Path other : children(directory.resolveSibling("."))) {
      if (other.getFileName() == null
          || name(other).equals(name(directory))
          || !KEY_NAME.matcher(name(other)).matches()
          || !Files.isDirectory(other, LinkOption.NOFOLLOW_LINKS)) {
        continue;
      }
      for (Path file : children(other)) {
        BasicFileAttributes attributes =
            Files.readAttributes(file, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
        if (TEMPORARY_NAME.matcher(name(file)).matches()) {
          files.delete(file);
        } else if (FILE_NAME.matcher(name(file)).matches()) {
          DiskEntry entry = new DiskEntry(file, attributes.size(), null, 0, 0);
          contents.entries.add(new Found(entry, new int[0], attributes.lastModifiedTime()));
        }
      }
    }
  }

  private static List<Path> children(Path directory) throws IOException {
    try (DirectoryStream<Path> stream = Files.newDirectoryStream(directory)) {
      List<Path> children = new ArrayList<>();
      stream.forEach(children::add);
      return children;
    } catch (DirectoryIteratorException e) {
      throw e.getCause();
    }
  }

  private static String name(Path file) {
    return String.valueOf(file.getFileName());
  }

  private Path file(String id) {
    return directory.resolve(id + ".entry");
  }

  private static String id(DiskEntry entry) {
    return entry.name().substring(0, 32);
  }

  /** A writer of an entry, and the entry that it will have written. */
  public record Draft(DiskEntry entry, EntryWriter writer) {}

  /**
   * Prepares a new entry; nothing is written yet.
   *
   * @param tokens those the state has seen
   * @param parent a shorter one whose tokens are the first of these
   */
  public Draft draft(int[] tokens, @Nullable DiskEntry parent) {
    byte[] random = new byte[16];
    ThreadLocalRandom.current().nextBytes(random);
    String id = HexFormat.of().formatHex(random);
    int firstPage = parent == null ? 0 : parent.position() / shape.pageTokens();
    DiskEntry before = parent;
    while (before != null && before.firstPage() == firstPage) {
      before = before.parent(); // it has no page that this one lacks
    }
    EntryHeader header =
        new EntryHeader(
            key,
            id,
            before == null ? EntryHeader.NONE : id(before),
            firstPage,
            tokens.length,
            shape);
    DiskEntry entry = new DiskEntry(file(id), header.fileBytes(), before, firstPage, tokens.length);
    return new Draft(entry, new EntryWriter(files, directory, file(id), header, tokens));
  }

  /** A reader of an entry whose state has seen the first of these tokens. */
  public ChainReader reader(DiskEntry entry, int[] tokens) {
    return new ChainReader(this, entry, tokens);
  }

  /** Deletes an entry's file. */
  public void delete(DiskEntry entry) throws IOException {
    files.delete(entry.file());
  }

  /** Notes on the disk that an entry was used. */
  public void touch(DiskEntry entry, FileTime time) throws IOException {
    files.touch(entry.file(), time.toInstant());
  }

  /** Lets other processes use the directory. */
  @Override
  public void close() throws IOException {
    lock.close();
  }
}
