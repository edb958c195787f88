package dev.lily.engine.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.lifecycle.AfterProperty;
import net.jqwik.api.lifecycle.BeforeProperty;

class SafetensorsFilePropertyTest {
  private static final byte[] GOOD =
      new SafetensorsWriter()
          .addF32("a", new float[] {1, 2, 3, 4}, 2, 2)
          .addBf16("b", new float[] {1, 2, 3}, 3)
          .add("c", "U8", new byte[] {1, 2, 3}, 3)
          .toBytes();
  private static final int HEADER_END = GOOD.length - 25;

  private Path file;

  @BeforeProperty
  void createFile() throws IOException {
    file = Files.createTempFile("damaged", ".safetensors");
  }

  @AfterProperty
  void deleteFile() throws IOException {
    Files.deleteIfExists(file);
  }

  /** One byte of a file set to a value. */
  record Damage(int position, byte value) {}

  /** Damage to the length and the header. */
  @Provide
  Arbitrary<List<Damage>> damages() {
    Arbitrary<Integer> positions =
        Arbitraries.oneOf(
            Arbitraries.integers().between(0, 7), Arbitraries.integers().between(8, HEADER_END));
    Arbitrary<Byte> values =
        Arbitraries.oneOf(Arbitraries.bytes(), Arbitraries.of(bytes("{}[]\",:-0123456789.eE \\")));
    return Combinators.combine(positions, values).as(Damage::new).list().ofMinSize(1).ofMaxSize(4);
  }

  @Property(tries = 1000)
  void aDamagedHeaderIsRefusedOrHarmless(@ForAll("damages") List<Damage> damages) {
    byte[] content = GOOD.clone();
    damages.forEach(damage -> content[damage.position] = damage.value);

    openAndReadEverything(content);
  }

  @Property(tries = 300)
  void aFileCutOrExtendedAnywhereIsRefused(@ForAll("lengths") int length) {
    byte[] content = Arrays.copyOf(GOOD, length);

    assertThat(openAndReadEverything(content)).isEqualTo(length == GOOD.length);
  }

  @Provide
  Arbitrary<Integer> lengths() {
    return Arbitraries.integers().between(0, GOOD.length + 40);
  }

  /** Entries whose fields are of the right kind, of the wrong kind, or extreme. */
  @Provide
  Arbitrary<String> headers() {
    Arbitrary<String> numbers =
        Arbitraries.of(
            "0",
            "1",
            "2",
            "3",
            "4",
            "6",
            "8",
            "-1",
            "16",
            "22",
            "25",
            "0.5",
            "1e3",
            "null",
            "\"4\"",
            "9007199254740992",
            "9007199254740993",
            "9223372036854775807",
            "9223372036854775808",
            "4294967296",
            "[]");
    Arbitrary<String> shapes =
        numbers.list().ofMaxSize(4).map(it -> "[" + String.join(",", it) + "]");
    Arbitrary<String> offsets =
        numbers.list().ofMinSize(1).ofMaxSize(3).map(it -> "[" + String.join(",", it) + "]");
    Arbitrary<String> dtypes = Arbitraries.of("U8", "BF16", "F32", "U32", "I64", "F4", "X");
    Arbitrary<String> names = Arbitraries.of("a", "b", "c", "mtp.a", "vision_tower.b");
    Arbitrary<String> entries =
        Combinators.combine(names, dtypes, shapes, offsets)
            .as("\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":%s}"::formatted);
    return entries.list().ofMaxSize(4).map(it -> "{" + String.join(",", it) + "}");
  }

  @Property(tries = 1000)
  void aHeaderOfOddValuesIsRefusedOrHarmless(
      @ForAll("headers") String header, @ForAll @IntRange(max = 25) int dataBytes) {
    openAndReadEverything(SafetensorsWriter.assemble(header, new byte[dataBytes]));
  }

  /** Opens a file and reads every byte of every tensor; false if it was refused. */
  private boolean openAndReadEverything(byte[] content) {
    try {
      Files.write(file, content);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    try (Arena arena = Arena.ofConfined()) {
      SafetensorsFile opened = SafetensorsFile.open(file, arena);
      long total = 0;
      for (TensorEntry tensor : opened.tensors()) {
        long begin = tensor.data().address() - opened.mapping().address();
        assertThat(begin).isBetween(8L, (long) content.length);
        assertThat(tensor.data().toArray(ValueLayout.JAVA_BYTE))
            .isEqualTo(
                Arrays.copyOfRange(content, (int) begin, (int) (begin + tensor.data().byteSize())));
        total += tensor.data().byteSize();
      }
      assertThat(total).isLessThanOrEqualTo(content.length - 8L);
      return true;
    } catch (CheckpointException e) {
      assertThat(e.file()).isEqualTo(file);
      assertThat(e.getMessage()).isNotBlank();
      return false;
    }
  }

  private static List<Byte> bytes(String text) {
    List<Byte> bytes = new ArrayList<>();
    for (byte b : text.getBytes(StandardCharsets.US_ASCII)) {
      bytes.add(b);
    }
    return bytes;
  }
}
