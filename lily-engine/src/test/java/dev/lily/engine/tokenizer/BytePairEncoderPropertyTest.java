package dev.lily.engine.tokenizer;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;

class BytePairEncoderPropertyTest {
  private static final int[] BYTE_IDS = IntStream.range(0, 256).toArray();

  @Provide
  Arbitrary<String> pieces() {
    return Arbitraries.strings().withChars("abcd\u00e9").ofMinLength(1).ofMaxLength(200);
  }

  /** Any list of merges will do, not only one that a trainer would make. */
  @Property
  void mergesAsTheDefinitionSays(@ForAll("pieces") String piece, @ForAll long seed) {
    Random random = new Random(seed);
    int[] alphabet = {'a', 'b', 'c', 'd', 0xC3, 0xA9};
    Map<List<Integer>, Integer> ranks = new HashMap<>();
    List<int[]> merges = new ArrayList<>();
    for (int i = random.nextInt(40); i > 0; i--) {
      int left = token(random, alphabet, merges.size());
      int right = token(random, alphabet, merges.size());
      if (ranks.putIfAbsent(List.of(left, right), merges.size()) == null) {
        int merged = random.nextInt(8) == 0 ? 256 : 256 + merges.size();
        merges.add(new int[] {left, right, merged});
      }
    }
    BytePairEncoder encoder = new BytePairEncoder(table(merges), BYTE_IDS);
    encoder.appendPiece(piece, 0, piece.length());
    assertThat(encoder.toArray()).containsExactly(simplest(piece, merges, ranks));
  }

  private static int token(Random random, int[] alphabet, int merges) {
    return merges > 0 && random.nextBoolean()
        ? 256 + random.nextInt(merges)
        : alphabet[random.nextInt(alphabet.length)];
  }

  private static MergeTable table(List<int[]> merges) {
    return new MergeTable(column(merges, 0), column(merges, 1), column(merges, 2));
  }

  private static int[] column(List<int[]> merges, int column) {
    return merges.stream().mapToInt(merge -> merge[column]).toArray();
  }

  private static int[] simplest(
      String piece, List<int[]> merges, Map<List<Integer>, Integer> ranks) {
    List<Integer> tokens = new ArrayList<>();
    for (byte b : piece.getBytes(StandardCharsets.UTF_8)) {
      tokens.add(b & 0xFF);
    }
    while (true) {
      int best = Integer.MAX_VALUE;
      int at = -1;
      for (int i = 0; i + 1 < tokens.size(); i++) {
        int rank = ranks.getOrDefault(tokens.subList(i, i + 2), Integer.MAX_VALUE);
        if (rank < best) {
          best = rank;
          at = i;
        }
      }
      if (at < 0) {
        return tokens.stream().mapToInt(Integer::intValue).toArray();
      }
      tokens.set(at, merges.get(best)[2]);
      tokens.remove(at + 1);
    }
  }
}
