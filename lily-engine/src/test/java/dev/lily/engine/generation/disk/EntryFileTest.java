package dev.lily.engine.generation.disk;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.lily.engine.generation.disk.CacheDirectory.Contents;
import dev.lily.engine.generation.disk.CacheDirectory.Draft;
import dev.lily.engine.generation.disk.CacheDirectory.Found;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Files of entries: written, found, read, and damaged in every part. */
class EntryFileTest {
  private static final String KEY = "0123456789abcdef".repeat(4);
  private static final String OTHER_KEY = "fedcba9876543210".repeat(4);

  /** A slot of two slices, the second of them short. */
  private static final EntryShape SHAPE = new EntryShape(4, 100, (1 << 20) + 36);

  private static final int[] TOKENS = IntStream.range(1000, 1010).toArray();

  @TempDir private Path base;
  private final Arena arena = Arena.ofAuto();

  private CacheDirectory open(String key) throws IOException {
    return CacheDirectory.open(base, key, SHAPE, FileStore.SYSTEM);
  }

  /** What a piece of an entry holds. */
  private MemorySegment bytes(int seed, long size) {
    byte[] bytes = new byte[(int) size];
    new Random(seed).nextBytes(bytes);
    return arena.allocate(size).copyFrom(MemorySegment.ofArray(bytes));
  }

  private MemorySegment page(int page) {
    return bytes(page, SHAPE.pageBytes());
  }

  private MemorySegment slice(int seed, int slice) {
    return bytes(100 * seed + slice, SHAPE.sliceBytes(slice));
  }

  private DiskEntry write(CacheDirectory directory, int[] tokens, DiskEntry parent) {
    Draft draft = directory.draft(tokens, parent);
    EntryWriter writer = draft.writer();
    for (int i = 0; i < writer.numPages(); i++) {
      writer.write(page(writer.firstPage() + i));
    }
    writer.write(slice(tokens.length, 0));
    writer.write(slice(tokens.length, 1));
    assertThat(writer.isFinished()).isFalse();
    assertThat(draft.entry().file()).doesNotExist();
    writer.finish();
    assertThat(writer.failure()).isNull();
    assertThat(writer.isFinished()).isTrue();
    assertThat(draft.entry().file()).hasSize(draft.entry().bytes());
    return draft.entry();
  }

  /** Whether everything reads back as it was written. */
  private boolean reads(CacheDirectory directory, DiskEntry entry, int[] tokens) {
    try (ChainReader reader = directory.reader(entry, tokens)) {
      for (int page = 0; page < SHAPE.pages(entry.position()); page++) {
        MemorySegment target = arena.allocate(SHAPE.pageBytes());
        if (!reader.readPage(page, target)) {
          return false;
        }
        assertThat(target.mismatch(page(page))).isEqualTo(-1);
      }
      for (int slice = 0; slice < SHAPE.slices(); slice++) {
        MemorySegment target = arena.allocate(SHAPE.sliceBytes(slice));
        if (!reader.readSlice(slice, target)) {
          return false;
        }
        assertThat(target.mismatch(slice(entry.position(), slice))).isEqualTo(-1);
      }
      return true;
    }
  }

  @Test
  void whatWasWrittenIsFoundAndReadBack() throws IOException {
    int[] longer = IntStream.range(1000, 1017).toArray();
    try (CacheDirectory directory = open(KEY)) {
      DiskEntry parent = write(directory, TOKENS, null);
      DiskEntry child = write(directory, longer, parent);
      assertThat(child.firstPage()).isEqualTo(2);
      assertThat(child.bytes()).isEqualTo(parent.bytes() + 7 * 4);
    }
    try (CacheDirectory directory = open(KEY)) {
      Contents contents = directory.scan();
      assertThat(contents.deleted()).isEmpty();
      assertThat(contents.entries())
          .extracting(Found::tokens)
          .containsExactlyInAnyOrder(TOKENS, longer);
      for (Found found : contents.entries()) {
        assertThat(reads(directory, found.entry(), found.tokens())).isTrue();
      }
    }
  }

  @Test
  void onlyTheOwnerMayLookIntoThem() throws IOException {
    Path made = base.resolve("made/by/lily");
    try (CacheDirectory directory = CacheDirectory.open(made, KEY, SHAPE, FileStore.SYSTEM)) {
      DiskEntry entry = write(directory, TOKENS, null);
      for (Path path : List.of(made, made.resolve("lily-prefixes"), directory.path())) {
        assertThat(Files.getPosixFilePermissions(path))
            .isEqualTo(PosixFilePermissions.fromString("rwx------"));
      }
      assertThat(Files.getPosixFilePermissions(entry.file()))
          .isEqualTo(PosixFilePermissions.fromString("rw-------"));
    }
  }

  /** One bit of each part of the file, by the offset of its byte; negative from the end. */
  @ParameterizedTest
  @ValueSource(
      ints = {
        0,
        8,
        12,
        16,
        20,
        24,
        31,
        32,
        40,
        71,
        72,
        87,
        88,
        103,
        120,
        124,
        127,
        128,
        167,
        168,
        267,
        268,
        467,
        468,
        600,
        (1 << 20) + 467,
        (1 << 20) + 468,
        -29,
        -28,
        -24,
        -12,
        -8,
        -5,
        -4,
        -1
      })
  void aBitThatFlippedIsNoticedAndTheFileIsNotUsed(int offset) throws IOException {
    DiskEntry entry;
    try (CacheDirectory directory = open(KEY)) {
      entry = write(directory, TOKENS, null);
    }
    flip(entry.file(), offset < 0 ? entry.bytes() + offset : offset);
    try (CacheDirectory directory = open(KEY)) {
      Contents contents = directory.scan();
      assertThat(contents.entries().size() + contents.deleted().size()).isEqualTo(1);
      if (contents.entries().isEmpty()) {
        assertThat(entry.file()).doesNotExist();
      } else {
        DiskEntry found = contents.entries().getFirst().entry();
        assertThat(reads(directory, found, TOKENS)).isFalse();
        directory.delete(found);
        assertThat(entry.file()).doesNotExist();
      }
    }
  }

  private static void flip(Path file, long offset) throws IOException {
    try (FileChannel channel =
        FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      ByteBuffer one = ByteBuffer.allocate(1);
      channel.read(one, offset);
      one.put(0, (byte) (one.get(0) ^ 0x10)).flip();
      channel.write(one, offset);
    }
  }

  @ParameterizedTest
  @ValueSource(
      ints = {
        0,
        1,
        127,
        128,
        129,
        168,
        169,
        268,
        468,
        500,
        (1 << 20) + 468,
        (1 << 20) + 504,
        -24,
        -5,
        -4,
        -1
      })
  void aFileThatIsCutOffIsDeleted(int size) throws IOException {
    try (CacheDirectory directory = open(KEY)) {
      DiskEntry entry = write(directory, TOKENS, null);
      try (FileChannel channel = FileChannel.open(entry.file(), StandardOpenOption.WRITE)) {
        channel.truncate(size < 0 ? entry.bytes() + size : size);
      }
      assertThat(reads(directory, entry, TOKENS)).isFalse();
      assertThat(directory.scan().entries()).isEmpty();
      assertThat(entry.file()).doesNotExist();
    }
  }

  @Test
  void aLengthThatIsHugeSetsNothingAside() throws IOException {
    try (CacheDirectory directory = open(KEY)) {
      for (int position : new int[] {Integer.MAX_VALUE, 1 << 30, 1 << 22, -1, 0}) {
        DiskEntry entry = write(directory, TOKENS, null);
        ByteBuffer length = ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN);
        length.putInt(0, position);
        try (FileChannel channel = FileChannel.open(entry.file(), StandardOpenOption.WRITE)) {
          channel.write(length, 12);
        }
        assertThat(directory.scan().deleted()).hasSize(1);
        assertThat(entry.file()).doesNotExist();
      }
    }
  }

  @Test
  void aFileOfAnotherKeyVersionOrNameIsDeleted() throws IOException {
    DiskEntry other;
    try (CacheDirectory directory = open(OTHER_KEY)) {
      other = write(directory, TOKENS, null);
    }
    try (CacheDirectory directory = open(KEY)) {
      String name = String.valueOf(other.file().getFileName());
      Files.copy(other.file(), directory.path().resolve(name));
      DiskEntry own = write(directory, TOKENS, null);
      Files.copy(own.file(), directory.path().resolve("0".repeat(32) + ".entry"));
      Files.writeString(directory.path().resolve("1".repeat(32) + ".entry"), "something else");
      Contents contents = directory.scan();
      assertThat(contents.deleted())
          .anyMatch(why -> why.contains("another model or format"))
          .anyMatch(why -> why.contains("another entry's name"))
          .anyMatch(why -> why.contains("full length"))
          .hasSize(3);
      assertThat(contents.entries()).hasSize(2);
      assertThat(contents.entries()).filteredOn(found -> found.entry().position() == 0).hasSize(1);
      assertThat(other.file()).as("in its own directory it is left").exists();
    }
  }

  @Test
  void anEntryWhoseParentIsGoneIsDeletedWithAllBehindIt() throws IOException {
    int[] longer = IntStream.range(1000, 1017).toArray();
    int[] longest = IntStream.range(1000, 1030).toArray();
    try (CacheDirectory directory = open(KEY)) {
      DiskEntry parent = write(directory, TOKENS, null);
      DiskEntry child = write(directory, longer, parent);
      write(directory, longest, child);
      directory.delete(parent);
      assertThat(reads(directory, child, longer)).isFalse();
      assertThat(directory.scan().deleted()).hasSize(2);
      assertThat(directory.scan().entries()).isEmpty();
    }
  }

  @Test
  void whatIsNotNamedAsOursIsLeftAloneAndLeftoversAreRemoved() throws IOException {
    Path outside = Files.writeString(base.resolve("secret"), "of somebody else");
    try (CacheDirectory directory = open(KEY)) {
      Path left = Files.createFile(directory.path().resolve("a".repeat(32) + ".tmp"));
      Path foreign = Files.createFile(directory.path().resolve("notes.txt"));
      Path link =
          Files.createSymbolicLink(directory.path().resolve("b".repeat(32) + ".entry"), outside);
      directory.scan();
      assertThat(left).doesNotExist();
      assertThat(foreign).exists();
      assertThat(Files.isSymbolicLink(link)).isFalse();
      assertThat(outside).hasContent("of somebody else");
    }
  }

  @Test
  void aDirectoryNamedAsAFileCostsNothingElse() throws IOException {
    try (CacheDirectory directory = open(KEY)) {
      write(directory, TOKENS, null);
      Path named = Files.createDirectory(directory.path().resolve("c".repeat(32) + ".entry"));
      Files.createFile(named.resolve("of somebody else"));
      Contents contents = directory.scan();
      assertThat(contents.entries()).hasSize(1);
      assertThat(contents.deleted()).singleElement().asString().contains("cannot be deleted");
      assertThat(named).isNotEmptyDirectory();
    }
  }

  @Test
  void anEntryThatHasNoPageOfItsOwnIsNotNeededByTheNext() throws IOException {
    try (CacheDirectory directory = open(KEY)) {
      DiskEntry first = write(directory, IntStream.range(1000, 1009).toArray(), null);
      DiskEntry second = write(directory, TOKENS, first);
      int[] longer = IntStream.range(1000, 1011).toArray();
      DiskEntry third = write(directory, longer, second);
      assertThat(second.needs(first)).isTrue();
      assertThat(third.needs(second)).isFalse();
      assertThat(third.needs(first)).isTrue();
      directory.delete(second);
      assertThat(reads(directory, third, longer)).isTrue();
      assertThat(directory.scan().deleted()).isEmpty();
    }
  }

  @Test
  void aLinkInPlaceOfTheDirectoryIsNotFollowed() throws IOException {
    Path elsewhere = Files.createDirectory(base.resolve("elsewhere"));
    Files.createSymbolicLink(base.resolve("lily-prefixes"), elsewhere);
    assertThatThrownBy(() -> open(KEY)).isInstanceOf(IOException.class);
    assertThat(elsewhere).isEmptyDirectory();
  }

  @Test
  void oneAtATimeUsesADirectory() throws IOException {
    try (CacheDirectory _ = open(KEY)) {
      assertThatThrownBy(() -> open(OTHER_KEY)).hasMessageContaining("uses it");
    }
    open(OTHER_KEY).close();
  }

  @Test
  void filesAreListedByTheirLastUse() throws IOException {
    try (CacheDirectory directory = open(KEY)) {
      for (int i = 0; i < 4; i++) {
        int[] tokens = TOKENS.clone();
        tokens[0] = i;
        DiskEntry entry = write(directory, tokens, null);
        directory.touch(entry, FileTime.fromMillis(1_000_000 + 1000 * (i ^ 2)));
      }
      assertThat(directory.scan().entries())
          .extracting(found -> found.tokens()[0])
          .containsExactly(2, 3, 0, 1);
    }
  }

  @Test
  void anEntryThatIsGivenUpLeavesNothing() throws IOException {
    try (CacheDirectory directory = open(KEY)) {
      Draft draft = directory.draft(TOKENS, null);
      draft.writer().write(page(0));
      draft.writer().abandon();
      draft.writer().write(page(1));
      draft.writer().finish();
      assertThat(draft.writer().isFinished()).isFalse();
      assertThat(directory.path()).isEmptyDirectory();
    }
  }

  @Test
  void tokensOfAnotherSequenceAreNotServed() throws IOException {
    int[] other = Arrays.copyOf(TOKENS, TOKENS.length);
    other[5]++;
    try (CacheDirectory directory = open(KEY)) {
      DiskEntry entry = write(directory, TOKENS, null);
      assertThat(reads(directory, entry, TOKENS)).isTrue();
      assertThat(reads(directory, entry, other)).isFalse();
    }
  }
}
