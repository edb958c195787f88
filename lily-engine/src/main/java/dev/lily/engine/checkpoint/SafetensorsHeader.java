package dev.lily.engine.checkpoint;

import static dev.lily.engine.checkpoint.MessageText.quoted;

import dev.lily.engine.checkpoint.CheckpointException.Kind;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.Reader;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.core.JsonParser;
import tools.jackson.core.JsonParser.NumberType;
import tools.jackson.core.JsonToken;
import tools.jackson.core.ObjectReadContext;
import tools.jackson.core.StreamReadConstraints;
import tools.jackson.core.TokenStreamFactory;
import tools.jackson.core.json.JsonFactory;

/**
 * Reads the JSON header of a safetensors file as a stream. Checks form and ranges of each entry by
 * itself; whether the entries fit each other and the file is {@link SafetensorsLayout}'s business.
 */
final class SafetensorsHeader {
  static final int MAX_TENSORS = 100_000;
  private static final int MAX_METADATA_ENTRIES = 10_000;
  private static final int MAX_RANK = 16;
  private static final int MAX_NAME_CHARS = 1024;

  /** The largest number that every JSON implementation keeps exactly. */
  private static final long MAX_NUMBER = 1L << 53;

  /** A reader-based parser without a symbol table: hostile names cannot make hashes collide. */
  private static final JsonFactory JSON =
      JsonFactory.builder()
          .disable(TokenStreamFactory.Feature.CANONICALIZE_PROPERTY_NAMES)
          .streamReadConstraints(
              StreamReadConstraints.builder()
                  .maxNestingDepth(4)
                  .maxNameLength(MAX_NAME_CHARS)
                  .maxStringLength(2 * MAX_NAME_CHARS)
                  .maxNumberLength(100)
                  .build())
          .build();

  /** A tensor as declared; offsets are relative to the data section. */
  record Entry(String name, String dtype, List<Long> shape, long begin, long end) {
    Entry {
      shape = List.copyOf(shape);
    }
  }

  private final Path file;
  private final JsonParser parser;

  /** The tensor whose entry is being read, for messages. */
  private @Nullable String tensor;

  private SafetensorsHeader(Path file, JsonParser parser) {
    this.file = file;
    this.parser = parser;
  }

  /**
   * Reads the entries in header order.
   *
   * @param json the header's bytes and no more
   */
  static List<Entry> read(Path file, InputStream json) {
    Reader utf8 =
        new InputStreamReader(
            json,
            StandardCharsets.UTF_8
                .newDecoder()
                .onMalformedInput(CodingErrorAction.REPORT)
                .onUnmappableCharacter(CodingErrorAction.REPORT));
    try (JsonParser parser = JSON.createParser(ObjectReadContext.empty(), utf8)) {
      SafetensorsHeader header = new SafetensorsHeader(file, parser);
      try {
        return header.readEntries();
      } catch (JacksonException e) {
        throw header.notJson(e);
      }
    }
  }

  private List<Entry> readEntries() {
    if (parser.nextToken() != JsonToken.START_OBJECT) {
      throw corrupt("The header must be a JSON object but begins with " + found());
    }
    List<Entry> entries = new ArrayList<>();
    Set<String> names = new HashSet<>();
    while (parser.nextToken() == JsonToken.PROPERTY_NAME) {
      String name = parser.currentName();
      if (!names.add(name)) {
        throw corrupt("The header holds a duplicate key: tensor %s twice".formatted(quoted(name)));
      }
      parser.nextToken();
      if (name.equals("__metadata__")) {
        checkMetadata();
      } else {
        if (entries.size() == MAX_TENSORS) {
          throw corrupt("The header lists more than %d tensors".formatted(MAX_TENSORS));
        }
        tensor = name;
        entries.add(readEntry(name));
        tensor = null;
      }
    }
    if (parser.nextToken() != null) {
      throw corrupt("After the header's JSON object comes " + found());
    }
    return entries;
  }

  private void checkMetadata() {
    if (parser.currentToken() != JsonToken.START_OBJECT) {
      throw corrupt("__metadata__ must be an object of strings but is " + found());
    }
    Set<String> keys = new HashSet<>();
    while (parser.nextToken() == JsonToken.PROPERTY_NAME) {
      String key = parser.currentName();
      if (!keys.add(key)) {
        throw corrupt("__metadata__ holds a duplicate key: %s".formatted(quoted(key)));
      }
      if (keys.size() > MAX_METADATA_ENTRIES) {
        throw corrupt("__metadata__ has more than %d entries".formatted(MAX_METADATA_ENTRIES));
      }
      if (parser.nextToken() != JsonToken.VALUE_STRING) {
        throw corrupt(
            "__metadata__ must be an object of strings but %s is %s"
                .formatted(quoted(key), found()));
      }
    }
  }

  private Entry readEntry(String name) {
    if (parser.currentToken() != JsonToken.START_OBJECT) {
      throw corrupt("its entry must be an object but is " + found());
    }
    String dtype = null;
    List<Long> shape = null;
    List<Long> offsets = null;
    while (parser.nextToken() == JsonToken.PROPERTY_NAME) {
      String field = parser.currentName();
      parser.nextToken();
      switch (field) {
        case "dtype" -> {
          requireFirst(dtype, field);
          if (parser.currentToken() != JsonToken.VALUE_STRING) {
            throw corrupt("dtype must be a string but is " + found());
          }
          dtype = parser.getString();
        }
        case "shape" -> {
          requireFirst(shape, field);
          shape = readIntegers(field, MAX_RANK);
        }
        case "data_offsets" -> {
          requireFirst(offsets, field);
          offsets = readIntegers(field, 2);
        }
        default ->
            throw corrupt(
                "its entry has the unknown field %s; known are dtype, shape, data_offsets"
                    .formatted(quoted(field)));
      }
    }
    if (dtype == null || shape == null || offsets == null) {
      throw corrupt(
          "its entry lacks "
              + (dtype == null ? "dtype" : shape == null ? "shape" : "data_offsets"));
    }
    if (offsets.size() != 2) {
      throw corrupt(
          "data_offsets must be [begin, end] but has %d numbers".formatted(offsets.size()));
    }
    long begin = offsets.getFirst();
    long end = offsets.getLast();
    if (begin > end) {
      throw corrupt("data_offsets [%d, %d] end before they begin".formatted(begin, end));
    }
    return new Entry(name, dtype, shape, begin, end);
  }

  private void requireFirst(@Nullable Object previous, String field) {
    if (previous != null) {
      throw corrupt("its entry holds a duplicate key: %s twice".formatted(field));
    }
  }

  private List<Long> readIntegers(String field, int maxSize) {
    if (parser.currentToken() != JsonToken.START_ARRAY) {
      throw corrupt("%s must be an array of integers but is %s".formatted(field, found()));
    }
    List<Long> values = new ArrayList<>();
    while (parser.nextToken() != JsonToken.END_ARRAY) {
      if (parser.currentToken() != JsonToken.VALUE_NUMBER_INT) {
        throw corrupt("%s must hold integers but has %s".formatted(field, found()));
      }
      if (parser.getNumberType() == NumberType.BIG_INTEGER
          || parser.getLongValue() < 0
          || parser.getLongValue() > MAX_NUMBER) {
        throw corrupt(
            "%s has %s, which is not within 0 and 2^53".formatted(field, parser.getString()));
      }
      if (values.size() == maxSize) {
        throw corrupt("%s has more than %d numbers".formatted(field, maxSize));
      }
      values.add(parser.getLongValue());
    }
    return values;
  }

  /** The current token in words. */
  private String found() {
    JsonToken token = parser.currentToken();
    if (token == null) {
      return "nothing";
    }
    return switch (token) {
      case START_OBJECT, END_OBJECT -> "an object";
      case START_ARRAY, END_ARRAY -> "an array";
      case VALUE_STRING -> "the string " + quoted(parser.getString());
      default -> parser.getString();
    };
  }

  private CheckpointException corrupt(String what) {
    String about = tensor == null ? what : "Tensor %s: %s".formatted(quoted(tensor), what);
    return new CheckpointException(
        Kind.CORRUPT, file, about + ". The file is damaged: fetch it again");
  }

  private CheckpointException notJson(JacksonException e) {
    String where = tensor == null ? "" : " in the entry of tensor " + quoted(tensor);
    String what =
        e.getCause() instanceof CharacterCodingException
            ? "The header is not valid UTF-8" + where
            : "The header is not JSON within the format's limits%s (%s)"
                .formatted(where, quoted(e.getOriginalMessage()));
    return new CheckpointException(
        Kind.CORRUPT, file, what + ". The file is damaged: fetch it again", e);
  }
}
