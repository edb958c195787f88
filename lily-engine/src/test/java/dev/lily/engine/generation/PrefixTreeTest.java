package dev.lily.engine.generation;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.generation.PrefixTree.Divergence;
import dev.lily.engine.generation.PrefixTree.Node;
import org.junit.jupiter.api.Test;

class PrefixTreeTest {
  private final PrefixTree<String> tree = new PrefixTree<>();

  private Node<String> put(String value, int... tokens) {
    return tree.put(tokens, tokens.length, value);
  }

  private Node<String> deepest(int... tokens) {
    return tree.deepest(tokens, tokens.length);
  }

  @Test
  void findsTheDeepestNodeOnASequencesPath() {
    put("abc", 1, 2, 3);
    put("abcde", 1, 2, 3, 4, 5);
    assertThat(deepest(1, 2, 3, 4, 5, 6).value()).isEqualTo("abcde");
    assertThat(deepest(1, 2, 3, 4, 9).value()).isEqualTo("abc");
    assertThat(deepest(1, 2, 3).value()).isEqualTo("abc");
    assertThat(deepest(1, 2).position()).isZero();
    assertThat(tree.deepest(new int[] {1, 2, 3, 4, 5}, 4).value()).isEqualTo("abc");
  }

  @Test
  void putsANodeIntoTheMiddleOfAnEdge() {
    Node<String> deep = put("deep", 1, 2, 3, 4);
    Node<String> shallow = put("shallow", 1, 2);
    assertThat(shallow.position()).isEqualTo(2);
    assertThat(deep.parent()).isSameAs(shallow);
    assertThat(deepest(1, 2, 3, 4)).isSameAs(deep);
    assertThat(deepest(1, 2, 3, 5)).isSameAs(shallow);
  }

  @Test
  void forksWhereSequencesPart() {
    Node<String> first = put("first", 1, 2, 3);
    Node<String> second = put("second", 1, 2, 4);
    assertThat(first.parent()).isSameAs(second.parent());
    assertThat(deepest(1, 2, 9).value()).isNull();
    assertThat(deepest(1, 2, 9).position()).isEqualTo(2);
    assertThat(deepest(1, 2, 9).isFork()).isTrue();
    assertThat(first.isFork()).isFalse();
  }

  @Test
  void findsAValueThatSharesAsManyTokensAsAny() {
    assertThat(tree.closest(new int[] {1})).isNull();
    Node<String> shallow = put("shallow", 1, 2);
    Node<String> deep = put("deep", 1, 2, 3, 4, 5);
    Node<String> other = put("other", 7, 8);
    assertThat(tree.closest(new int[] {1, 2, 3, 9})).isSameAs(deep);
    assertThat(tree.closest(new int[] {1, 2, 3})).isSameAs(deep);
    assertThat(tree.closest(new int[] {1, 2, 9})).isSameAs(shallow);
    assertThat(tree.closest(new int[] {7, 9})).isSameAs(other);
    put("fork", 1, 2, 3, 6);
    assertThat(tree.closest(new int[] {1, 2, 3, 9}).position()).isGreaterThan(3);
  }

  @Test
  void copiesTheTokens() {
    int[] tokens = {1, 2, 3};
    Node<String> node = tree.put(tokens, 2, "ab");
    tokens[0] = 9;
    assertThat(deepest(1, 2)).isSameAs(node);
  }

  @Test
  void joinsEdgesWhenANodeIsRemoved() {
    Node<String> shallow = put("shallow", 1, 2);
    Node<String> deep = put("deep", 1, 2, 3, 4);
    tree.remove(shallow);
    assertThat(deepest(1, 2, 3).position()).isZero();
    assertThat(deepest(1, 2, 3, 4)).isSameAs(deep);
    tree.remove(deep);
    assertThat(tree.isEmpty()).isTrue();
  }

  @Test
  void removesAForkThatLeadsToOneNodeOnly() {
    Node<String> first = put("first", 1, 2, 3);
    Node<String> second = put("second", 1, 2, 4, 5);
    tree.remove(first);
    assertThat(deepest(1, 2, 4).position()).isZero();
    assertThat(deepest(1, 2, 4, 5)).isSameAs(second);
    assertThat(second.parent()).isNotNull();
    tree.remove(second);
    assertThat(tree.isEmpty()).isTrue();
  }

  @Test
  void keepsANodeThatOthersLeadThrough() {
    Node<String> middle = put("middle", 1, 2);
    Node<String> first = put("first", 1, 2, 3);
    put("second", 1, 2, 4);
    tree.remove(middle);
    assertThat(deepest(1, 2, 3)).isSameAs(first);
    assertThat(deepest(1, 2, 9).value()).isNull();
  }

  @Test
  void saysWhereASequenceLeavesAllOthers() {
    put("abc", 1, 2, 3);
    assertThat(tree.divergence(new int[] {1, 2, 9})).isEqualTo(new Divergence(2, 3));
    assertThat(tree.divergence(new int[] {5})).isEqualTo(new Divergence(0, 1));
    assertThat(tree.divergence(new int[] {1, 2, 3, 4})).isEqualTo(new Divergence(3, -1));
    assertThat(tree.divergence(new int[] {1, 2})).isEqualTo(new Divergence(2, -1));
  }
}
