package dev.lily.engine.constraint;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Arrays: their number of items and what each may be. */
final class ArrayRules {
  private static final int MAX_TUPLE = 256;

  private final GrammarBuilder grammar;
  private final JsonRules json;
  private final SchemaCompiler schemas;

  ArrayRules(GrammarBuilder grammar, JsonRules json, SchemaCompiler schemas) {
    this.grammar = grammar;
    this.json = json;
    this.schemas = schemas;
  }

  /** Adds arrays, as a rule of their own because they count. */
  void emit(Assertions assertions, int from, int to) {
    int min = assertions.largestCount("minItems");
    int max = assertions.smallestCount("maxItems");
    assertions.requireOrder("minItems", min, "maxItems", max);
    SchemaLocation items = assertions.find("items");
    if (items != null && items.node().isArray()) {
      throw items.refused("a list of schemas is written 'prefixItems' in draft 2020-12.");
    }
    List<Integer> first = first(assertions.find("prefixItems"));
    Integer rest = restRule(items);
    grammar.call(from, rule(first, rest, min, max), to);
  }

  private List<Integer> first(@Nullable SchemaLocation prefixItems) {
    List<Integer> rules = new ArrayList<>();
    if (prefixItems != null) {
      if (!prefixItems.node().isArray() || prefixItems.node().size() > MAX_TUPLE) {
        throw prefixItems.refused(
            "the value must be an array of at most " + MAX_TUPLE + " schemas.");
      }
      for (int i = 0; i < prefixItems.node().size(); i++) {
        rules.add(schemas.rule(prefixItems.child(i)));
      }
    }
    return rules;
  }

  private @Nullable Integer restRule(@Nullable SchemaLocation items) {
    if (items == null) {
      return json.value();
    }
    return items.node().isBoolean() && !items.node().booleanValue() ? null : schemas.rule(items);
  }

  /** A rest that can never be written must leave no way that needs it, so nothing relies on min. */
  private int rule(List<Integer> first, @Nullable Integer rest, int min, int max) {
    int start = grammar.node();
    int end = grammar.endNode();
    int length = Math.min(first.size(), max);
    int before = grammar.counting(min, max);
    grammar.bytes(start, '[', '[', before);
    for (int i = 0; i < length; i++) {
      closeIf(i >= min, before, end);
      int behind = grammar.counting(min, max);
      grammar.call(item(before, i == 0, min, max), first.get(i), behind, Grammar.RAISE);
      before = behind;
    }
    closeIf(length >= min, before, end);
    if (rest != null && length < max) {
      int behind = grammar.counting(min, max);
      grammar.call(item(before, length == 0, min, max), rest, behind, Grammar.RAISE);
      grammar.bytes(behind, ']', ']', end, Grammar.AT_LEAST_MIN);
      grammar.call(item(behind, false, min, max), rest, behind, Grammar.RAISE);
    }
    return start;
  }

  private void closeIf(boolean enough, int node, int end) {
    if (enough) {
      grammar.bytes(node, ']', ']', end);
    }
  }

  /** The node at which the next item begins. */
  private int item(int before, boolean isFirst, int min, int max) {
    int item = grammar.counting(min, max);
    if (isFirst) {
      grammar.epsilon(before, item, Grammar.BELOW_MAX);
      return item;
    }
    int space = grammar.counting(min, max);
    grammar.bytes(before, ',', ',', space, Grammar.BELOW_MAX);
    grammar.bytes(space, ' ', ' ', item);
    grammar.epsilon(space, item);
    return item;
  }
}
