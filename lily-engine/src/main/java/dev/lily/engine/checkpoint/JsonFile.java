package dev.lily.engine.checkpoint;

import dev.lily.engine.checkpoint.CheckpointException.Kind;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Optional;
import tools.jackson.core.JacksonException;
import tools.jackson.core.StreamReadConstraints;
import tools.jackson.core.StreamReadFeature;
import tools.jackson.core.json.JsonFactory;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/**
 * Reads a small JSON file of a checkpoint, strictly: capped size, UTF-8, one object, no key twice.
 */
final class JsonFile {
  private static final JsonMapper JSON =
      JsonMapper.builder(
              JsonFactory.builder()
                  .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
                  .streamReadConstraints(
                      StreamReadConstraints.builder().maxNestingDepth(32).build())
                  .build())
          .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
          .build();

  private JsonFile() {}

  /**
   * Reads an object.
   *
   * @param maxBytes a larger file is refused unread
   * @throws CheckpointException if the file is absent, too large or not such an object
   */
  static JsonNode readObject(Path file, int maxBytes) {
    byte[] bytes = readBytes(file, maxBytes);
    JsonNode root;
    try {
      root =
          JSON.readTree(
              StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString());
    } catch (CharacterCodingException e) {
      throw damaged(file, bytes, "The file is not valid UTF-8", e);
    } catch (JacksonException e) {
      throw damaged(
          file,
          bytes,
          "The file is not JSON (line %d, column %d: %s)"
              .formatted(
                  e.getLocation() == null ? 0 : e.getLocation().getLineNr(),
                  e.getLocation() == null ? 0 : e.getLocation().getColumnNr(),
                  MessageText.quoted(e.getOriginalMessage())),
          e);
    }
    if (!root.isObject()) {
      throw new CheckpointException(
          Kind.CORRUPT,
          file,
          "The file must hold a JSON object but holds %s. Fetch the file again"
              .formatted(root.isMissingNode() ? "nothing" : "a JSON " + root.getNodeType()));
    }
    return root;
  }

  private static byte[] readBytes(Path file, int maxBytes) {
    RegularFile.require(file);
    try (InputStream in = Files.newInputStream(file)) {
      byte[] bytes = in.readNBytes(maxBytes + 1);
      if (bytes.length > maxBytes) {
        throw new CheckpointException(
            Kind.CORRUPT,
            file,
            "The file has more than %d bytes, far more than such a file needs. Is it what its name says?"
                .formatted(maxBytes));
      }
      return bytes;
    } catch (IOException e) {
      throw new CheckpointException(
          Kind.NOT_FOUND, file, "The file cannot be read (%s)".formatted(e), e);
    }
  }

  private static CheckpointException damaged(
      Path file, byte[] bytes, String message, Exception cause) {
    Optional<String> foreign =
        ForeignContent.describe(
            Arrays.copyOf(bytes, Math.min(bytes.length, ForeignContent.HEAD_BYTES)));
    return new CheckpointException(
        Kind.CORRUPT, file, foreign.orElse(message + ". Fetch the file again"), cause);
  }
}
