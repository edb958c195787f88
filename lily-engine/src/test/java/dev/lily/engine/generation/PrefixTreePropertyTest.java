package dev.lily.engine.generation;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.generation.PrefixTree.Node;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;

/** The tree against a map from token lists to values. */
class PrefixTreePropertyTest {

  @Property(tries = 500)
  void findsWhatAMapOfAllPrefixesFinds(
      @ForAll @Size(max = 40)
          List<@Size(min = 1, max = 8) List<@IntRange(min = 0, max = 2) Integer>> sequences,
      @ForAll long removals) {
    PrefixTree<Integer> tree = new PrefixTree<>();
    Map<List<Integer>, Node<Integer>> nodes = new HashMap<>();
    for (int i = 0; i < sequences.size(); i++) {
      List<Integer> sequence = sequences.get(i);
      Node<Integer> known = nodes.get(sequence);
      if (known != null && (removals >> i & 1) != 0) {
        tree.remove(known);
        nodes.remove(sequence);
      } else {
        nodes.put(sequence, tree.put(ints(sequence), sequence.size(), i));
      }
      for (List<Integer> asked : sequences) {
        assertThat(valued(tree.deepest(ints(asked), asked.size())))
            .isSameAs(longestPrefix(nodes, asked));
      }
    }
    nodes.values().forEach(tree::remove);
    assertThat(tree.isEmpty()).isTrue();
  }

  private static Node<Integer> longestPrefix(
      Map<List<Integer>, Node<Integer>> nodes, List<Integer> asked) {
    for (int length = asked.size(); length > 0; length--) {
      Node<Integer> node = nodes.get(asked.subList(0, length));
      if (node != null) {
        assertThat(node.position()).isEqualTo(length);
        return node;
      }
    }
    return null;
  }

  private static Node<Integer> valued(Node<Integer> node) {
    Node<Integer> found = node;
    while (found != null && found.value() == null) {
      found = found.parent();
    }
    return found;
  }

  private static int[] ints(List<Integer> list) {
    return list.stream().mapToInt(Integer::intValue).toArray();
  }
}
