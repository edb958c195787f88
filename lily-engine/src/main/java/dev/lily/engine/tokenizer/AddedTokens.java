package dev.lily.engine.tokenizer;

import java.util.Arrays;
import java.util.BitSet;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Finds added tokens in text; a trie, so that a look takes no longer than the longest token. */
final class AddedTokens {
  private final Node root = new Node();
  private final Map<String, AddedToken> byContent = new HashMap<>();
  private final BitSet ids = new BitSet();

  AddedTokens(Collection<AddedToken> tokens) {
    for (AddedToken token : tokens) {
      Node node = root;
      for (int i = 0; i < token.content().length(); i++) {
        node = node.childOrNew(token.content().charAt(i));
      }
      node.token = token;
      byContent.put(token.content(), token);
      ids.set(token.id());
    }
  }

  boolean contains(int id) {
    return ids.get(id);
  }

  /** The token with exactly this text. */
  @Nullable AddedToken get(String content) {
    return byContent.get(content);
  }

  /** The longest token that starts at {@code start} and ends by {@code limit}. */
  @Nullable AddedToken longestAt(String text, int start, int limit) {
    AddedToken longest = null;
    Node node = root.child(text.charAt(start));
    for (int next = start + 1; node != null; next++) {
      if (node.token != null) {
        longest = node.token;
      }
      node = next < limit ? node.child(text.charAt(next)) : null;
    }
    return longest;
  }

  private static final class Node {
    private char[] keys = {};
    private Node[] children = {};
    private @Nullable AddedToken token;

    @Nullable Node child(char key) {
      int at = Arrays.binarySearch(keys, key);
      return at < 0 ? null : children[at];
    }

    Node childOrNew(char key) {
      int at = Arrays.binarySearch(keys, key);
      if (at >= 0) {
        return children[at];
      }
      int place = -at - 1;
      char[] moreKeys = Arrays.copyOf(keys, keys.length + 1);
      Node[] moreChildren = Arrays.copyOf(children, keys.length + 1);
      System.arraycopy(keys, place, moreKeys, place + 1, keys.length - place);
      System.arraycopy(children, place, moreChildren, place + 1, keys.length - place);
      moreKeys[place] = key;
      moreChildren[place] = new Node();
      keys = moreKeys;
      children = moreChildren;
      return children[place];
    }
  }
}
