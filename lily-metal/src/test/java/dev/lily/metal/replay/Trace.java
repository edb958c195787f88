package dev.lily.metal.replay;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Dispatches in the order of their recording, as the double's {@code trace.c} writes them. */
public final class Trace {
  /**
   * What is bound to an index: a buffer from an offset on, or bytes if {@code buffer} is below 0.
   */
  public record Binding(int buffer, long offset, ByteBuffer bytes) {
    static final int BYTES = -1;
  }

  /**
   * @param groups threadgroups of the grid
   * @param threads threads of a threadgroup
   */
  public record Dispatch(String kernel, long[] groups, long[] threads, List<Binding> bindings) {
    /** A field of the parameter struct, which is bound last of what is given by bytes. */
    int parameter(int field) {
      return parameters().getInt(field * Integer.BYTES);
    }

    ByteBuffer parameters() {
      return bindings.stream()
          .filter(b -> b.buffer == Binding.BYTES)
          .reduce((first, second) -> second)
          .orElseThrow()
          .bytes;
    }
  }

  private final List<String> lines;
  private final Map<Integer, ByteBuffer> contents = new HashMap<>();
  private final List<Dispatch> dispatches = new ArrayList<>();
  private int numBarriers;

  private Trace(List<String> lines) {
    this.lines = lines;
    for (String line : lines) {
      String[] words = line.split(" ");
      switch (words[0]) {
        case "buffer" -> {
          if (words[3].equals("data")) {
            contents.put(Integer.parseInt(words[1]), bytes(words[4]));
          }
        }
        case "dispatch" -> dispatches.add(dispatch(words));
        case "barrier" -> numBarriers++;
        default -> throw new IllegalArgumentException("A trace has no command '" + line + "'");
      }
    }
  }

  public static Trace read(Path file) {
    try {
      return new Trace(Files.readAllLines(file));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static Trace of(String... lines) {
    return new Trace(List.of(lines));
  }

  private static Dispatch dispatch(String[] words) {
    List<Binding> bindings = new ArrayList<>();
    for (String word : Arrays.asList(words).subList(9, words.length)) {
      if (word.charAt(0) == '=') {
        bindings.add(new Binding(Binding.BYTES, 0, bytes(word.substring(1))));
      } else {
        String[] parts = word.substring(1).split("\\+");
        bindings.add(
            new Binding(
                Integer.parseInt(parts[0]), Long.parseLong(parts[1]), ByteBuffer.allocate(0)));
      }
    }
    return new Dispatch(words[1], longs(words, 2), longs(words, 5), bindings);
  }

  private static long[] longs(String[] words, int from) {
    return Arrays.stream(words, from, from + 3).mapToLong(Long::parseLong).toArray();
  }

  private static ByteBuffer bytes(String hex) {
    return ByteBuffer.wrap(HexFormat.of().parseHex(hex)).order(ByteOrder.LITTLE_ENDIAN);
  }

  public List<Dispatch> dispatches() {
    return dispatches;
  }

  public int numBarriers() {
    return numBarriers;
  }

  /** The commands as they were written. */
  List<String> lines() {
    return lines;
  }

  /** The word at an index of what is bound, if the trace holds the buffer's contents. */
  Optional<Integer> word(Binding binding, int index) {
    ByteBuffer bytes = contents.get(binding.buffer);
    return Optional.ofNullable(bytes)
        .map(b -> b.getInt(Math.toIntExact(binding.offset + (long) index * Integer.BYTES)));
  }
}
