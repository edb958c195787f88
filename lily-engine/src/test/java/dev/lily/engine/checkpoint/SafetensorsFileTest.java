package dev.lily.engine.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.lily.engine.checkpoint.CheckpointException.Kind;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SafetensorsFileTest {
  @TempDir Path directory;
  private Path file;

  @BeforeEach
  void nameFile() {
    file = directory.resolve("model.safetensors");
  }

  @Test
  void readsBeyondTwoGibibytes() throws IOException {
    long large = 3L << 30;
    byte[] header =
        """
        {"large":{"dtype":"U8","shape":[%1$d],"data_offsets":[0,%1$d]},\
        "last":{"dtype":"F32","shape":[1],"data_offsets":[%1$d,%2$d]}}"""
            .formatted(large, large + 4)
            .getBytes(StandardCharsets.UTF_8);
    try (FileChannel channel =
        FileChannel.open(
            file,
            StandardOpenOption.CREATE_NEW,
            StandardOpenOption.WRITE,
            StandardOpenOption.SPARSE)) {
      channel.write(
          ByteBuffer.wrap(SafetensorsWriter.assemble(header.length, header, new byte[0])));
      channel.write(
          ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putFloat(0, 1.5f),
          8 + header.length + large);
    }

    try (Arena arena = Arena.ofShared()) {
      SafetensorsFile opened = SafetensorsFile.open(file, arena);

      assertThat(opened.mapping().byteSize()).isEqualTo(8 + header.length + large + 4);
      assertThat(opened.tensors().getFirst().data().byteSize()).isEqualTo(large);
      assertThat(
              opened
                  .tensors()
                  .getLast()
                  .data()
                  .get(ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN), 0))
          .isEqualTo(1.5f);
    }
  }

  @Test
  void keepsHeaderOrderAndOffersReadOnlySlices() {
    new SafetensorsWriter()
        .addF32("b", new float[] {1, 2}, 2)
        .addF32("a", new float[] {3}, 1, 1)
        .write(file);
    try (Arena arena = Arena.ofShared()) {
      SafetensorsFile opened = SafetensorsFile.open(file, arena);

      assertThat(opened.tensors()).extracting(TensorEntry::name).containsExactly("b", "a");
      assertThat(opened.tensors()).allMatch(tensor -> tensor.data().isReadOnly());
      assertThat(CheckpointValues.floats(opened.tensors().get(1))).containsExactly(3f);
    }
  }

  @Test
  void acceptsAHeaderWithoutTensors() throws IOException {
    Files.write(file, SafetensorsWriter.assemble("{}", new byte[0]));
    try (Arena arena = Arena.ofShared()) {
      assertThat(SafetensorsFile.open(file, arena).tensors()).isEmpty();
    }
  }

  @Test
  void lendsUnusedPartsAnyDtypeButChecksTheirRange() throws IOException {
    new SafetensorsWriter().add("mtp.fc.weight", "Q7_ODD", new byte[] {1, 2, 3}, 99).write(file);
    try (Arena arena = Arena.ofShared()) {
      TensorEntry tensor = SafetensorsFile.open(file, arena).tensors().getFirst();
      assertThat(tensor.dtype()).isEqualTo("Q7_ODD");
      assertThat(tensor.data().byteSize()).isEqualTo(3);
    }
    header("{'mtp.fc.weight':{'dtype':'Q7_ODD','shape':[9],'data_offsets':[0,9]}}", 8);

    assertThat(refusal()).hasMessageContaining("'mtp.fc.weight' ends at data byte 9");
  }

  @Test
  void countsElementsSmallerThanAByte() throws IOException {
    header("{'a':{'dtype':'F4','shape':[3,2],'data_offsets':[0,3]}}", 3);
    try (Arena arena = Arena.ofShared()) {
      assertThat(SafetensorsFile.open(file, arena).tensors()).hasSize(1);
    }
    header("{'a':{'dtype':'F4','shape':[5],'data_offsets':[0,2]}}", 2);

    assertThat(refusal()).hasMessageContaining("takes 2.5 bytes").hasMessageContaining("span 2");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "{'a':[]}                                                               | Tensor 'a': its entry must be an object",
        "{'a':null}                                                             | its entry must be an object but is null",
        "{'a':{'dtype':'U8','shape':[1]}}                                       | lacks data_offsets",
        "{'a':{'dtype':'U8','data_offsets':[0,1]}}                              | lacks shape",
        "{'a':{'shape':[1],'data_offsets':[0,1]}}                               | lacks dtype",
        "{'a':{'dtype':8,'shape':[1],'data_offsets':[0,1]}}                     | dtype must be a string but is 8",
        "{'a':{'dtype':'U8','shape':1,'data_offsets':[0,1]}}                    | shape must be an array of integers but is 1",
        "{'a':{'dtype':'U8','shape':[[1]],'data_offsets':[0,1]}}                | shape must hold integers but has an array",
        "{'a':{'dtype':'U8','shape':[true],'data_offsets':[0,1]}}               | shape must hold integers but has true",
        "{'a':{'dtype':'U8','shape':[1e0],'data_offsets':[0,1]}}                | shape must hold integers but has 1e0",
        "{'a':{'dtype':'U8','shape':[1],'data_offsets':[0]}}                    | [begin, end] but has 1 numbers",
        "{'a':{'dtype':'U8','shape':[1],'data_offsets':[0,1,1]}}                | data_offsets has more than 2 numbers",
        "{'a':{'dtype':'U8','shape':[1],'data_offsets':[0,1],'strides':[1]}}    | unknown field 'strides'",
        "{'a':{'dtype':'U8','shape':[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],'data_offsets':[0,1]}} | shape has more than 16 numbers",
        "{'a':{'dtype':'U8','shape':[99999999999999999999999999],'data_offsets':[0,1]}}       | not within 0 and 2^53",
        "{'a':{'dtype':'U8','shape':[0,9007199254740992,9007199254740992],'data_offsets':[0,0]},'b':{'dtype':'U8','shape':[1],'data_offsets':[0,1]}} | -",
        "{'a':{'dtype':'U8','shape':[9007199254740992,9007199254740992,0],'data_offsets':[0,0]}} | product overflows",
        "{'__metadata__':3}                                                     | __metadata__ must be an object of strings but is 3",
        "{'__metadata__':{'format':1}}                                          | 'format' is 1",
        "{'__metadata__':{'x':'1','x':'2'}}                                     | duplicate key: 'x'",
        "{'__metadata__':{},'__metadata__':{}}                                  | duplicate key",
        "{} x                                                                   | not JSON",
        "{}{}                                                                   | After the header's JSON object comes an object",
        "{'a':{'dtype':'U8','shape':[1],'data_offsets':[0,1]}                   | not JSON",
        "{'a':{'dtype':'U8','shape':[1],'data_offsets':[0,1}                    | in the entry of tensor 'a'",
        "{'b':{'dtype':'U8','shape':[0],'data_offsets':[1,1]},'a':{'dtype':'U8','shape':[1],'data_offsets':[0,1]}} | -",
        "{'b':{'dtype':'U8','shape':[0],'data_offsets':[0,0]},'a':{'dtype':'U8','shape':[1],'data_offsets':[0,1]}} | -",
      })
  void judgesHeadersByTheFormat(String header, String message) throws IOException {
    header(header, 1);

    if (message.equals("-")) {
      try (Arena arena = Arena.ofShared()) {
        assertThat(SafetensorsFile.open(file, arena).tensors()).hasSize(2);
      }
    } else {
      assertThat(refusal().kind()).isEqualTo(Kind.CORRUPT);
      assertThat(refusal()).hasMessageContaining(message);
    }
  }

  @Test
  void refusesAnEmptyTensorInTheMiddleOfAnother() throws IOException {
    header(
        "{'a':{'dtype':'U8','shape':[4],'data_offsets':[0,4]},"
            + "'b':{'dtype':'U8','shape':[0],'data_offsets':[2,2]}}",
        4);

    assertThat(refusal()).hasMessageContaining("'b' begins at data byte 2, inside tensor 'a'");
  }

  @Test
  void refusesDeepNestingWithoutRecursion() throws IOException {
    header("{'a':" + "[".repeat(1_000_000), 0);
    assertThat(refusal()).hasMessageContaining("its entry must be an object");
    header("{'__metadata__':" + "{'a':".repeat(1_000_000), 0);
    assertThat(refusal()).hasMessageContaining("'a' is an object");
  }

  @Test
  void refusesMoreTensorsThanAnyModelHas() throws IOException {
    header(
        IntStream.range(0, SafetensorsHeader.MAX_TENSORS + 1)
            .mapToObj("'%d':{'dtype':'U8','shape':[0],'data_offsets':[0,0]}"::formatted)
            .collect(Collectors.joining(",", "{", "}")),
        0);

    assertThat(refusal()).hasMessageContaining("more than 100000 tensors");
  }

  @Test
  void refusesAnEndlessName() throws IOException {
    header("{'" + "x".repeat(1 << 20) + "':{}}", 0);

    assertThat(refusal()).hasMessageContaining("within the format's limits");
    assertThat(refusal().getMessage()).hasSizeLessThan(1000);
  }

  @Test
  void refusesAnOverlongUtf8Sequence() throws IOException {
    byte[] header = "{\"??\":1}".getBytes(StandardCharsets.US_ASCII);
    header[2] = (byte) 0xc0;
    header[3] = (byte) 0xaf;
    Files.write(file, SafetensorsWriter.assemble(header.length, header, new byte[0]));

    assertThat(refusal()).hasMessageContaining("not valid UTF-8");
  }

  @Test
  void showsNoControlCharactersOfAHostileName() throws IOException {
    header("{'evil\\u001b[2J\\nname':3}", 0);

    assertThat(refusal()).hasMessageContaining("'evil?[2J?name'");
  }

  @ParameterizedTest
  @CsvSource({
    "Repository not found, begins with the text 'Repository not found'",
    "'  <html><body>', web page",
    "'<?xml version=\"1.0\"?><Error/>', web page",
    "'GGUF\u0003xxxxxxxxxx', GGUF",
    "'PK\u0003\u0004xxxxxxxxxx', ZIP"
  })
  void recognisesWhatLiesInTheFilesPlace(String content, String message) throws IOException {
    Files.writeString(file, content);

    assertThat(refusal()).hasMessageContaining(message);
  }

  private void header(String json, int dataBytes) throws IOException {
    Files.write(file, SafetensorsWriter.assemble(json.replace('\'', '"'), new byte[dataBytes]));
  }

  private CheckpointException refusal() {
    try (Arena arena = Arena.ofShared()) {
      CheckpointException e =
          catchThrowableOfType(CheckpointException.class, () -> SafetensorsFile.open(file, arena));
      assertThat(e).isNotNull();
      assertThat(e.file()).isEqualTo(file);
      return e;
    }
  }
}
