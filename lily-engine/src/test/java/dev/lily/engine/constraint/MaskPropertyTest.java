package dev.lily.engine.constraint;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;

/**
 * Masks against brute force. A small schema's documents are written out by a second program, which
 * shares nothing with the first; a token is right if and only if one of them goes on with it.
 */
class MaskPropertyTest {
  private static final int MAX_DOCUMENTS = 1000;

  @Property(tries = 150)
  void allowsExactlyTheTokensThatADocumentGoesOnWith(@ForAll long seed) {
    Random random = new Random(seed);
    FiniteSchema schema = FiniteSchema.random(random, 3);
    if (schema.documents().size() > MAX_DOCUMENTS) {
      return;
    }
    List<String> documents = List.copyOf(schema.documents());
    List<byte[]> tokens = Texts.cut(documents, 40, random);
    tokens.addAll(Texts.cut(List.of("\"a\": [1, true]}", "{\"é€\":\"\\u00e9\"}]]"), 20, random));
    TokenVocabulary vocabulary = Texts.vocabulary(tokens);
    Grammar grammar = Texts.schema(schema.text());
    MaskCache cache = new MaskCache(vocabulary, 20 * 64);
    for (int answer = 0; answer < 3; answer++) {
      follow(grammar, vocabulary, cache, documents, random);
    }
  }

  /** Writes one document of random tokens and checks the mask before each. */
  private static void follow(
      Grammar grammar,
      TokenVocabulary vocabulary,
      MaskCache cache,
      List<String> documents,
      Random random) {
    Matcher matcher = new Matcher(grammar, vocabulary);
    List<byte[]> left = documents.stream().map(d -> d.getBytes(UTF_8)).toList();
    byte[] written = {};
    int end = vocabulary.size() - 1;
    while (true) {
      byte[] prefix = written;
      boolean complete = left.stream().anyMatch(d -> d.length == prefix.length);
      long[] mask = cache.mask(matcher);
      List<Integer> allowed = new ArrayList<>();
      for (int token = 0; token < end; token++) {
        byte[] text = vocabulary.text(token);
        if (text == null) {
          assertThat(Texts.isAllowed(mask, token)).isFalse();
          continue;
        }
        byte[] next = join(prefix, text);
        boolean right = left.stream().anyMatch(d -> startsWith(d, next));
        assertThat(Texts.isAllowed(mask, token))
            .as(
                "%s after '%s'",
                new String(vocabulary.text(token), UTF_8), new String(prefix, UTF_8))
            .isEqualTo(right);
        if (right) {
          allowed.add(token);
        }
      }
      assertThat(Texts.isAllowed(mask, end)).isEqualTo(complete);
      assertThat(matcher.isFinished()).isEqualTo(complete && allowed.isEmpty());
      if (allowed.isEmpty() || (complete && random.nextBoolean())) {
        assertThat(complete).isTrue();
        return;
      }
      int token = allowed.get(random.nextInt(allowed.size()));
      matcher.advance(token);
      written = join(prefix, vocabulary.text(token));
      byte[] now = written;
      left = left.stream().filter(d -> startsWith(d, now)).toList();
    }
  }

  private static byte[] join(byte[] a, byte[] b) {
    byte[] joined = Arrays.copyOf(a, a.length + b.length);
    System.arraycopy(b, 0, joined, a.length, b.length);
    return joined;
  }

  private static boolean startsWith(byte[] text, byte[] prefix) {
    return text.length >= prefix.length
        && Arrays.equals(text, 0, prefix.length, prefix, 0, prefix.length);
  }

  /**
   * The arrangement by plain tokens must change nothing: every mask equals token by token trial.
   */
  @Property(tries = 60)
  void agreesWithTryingEachTokenInFreeText(@ForAll long seed) {
    Random random = new Random(seed);
    List<String> schemas =
        List.of(
            "true",
            "{'type':'string','minLength':3,'maxLength':9}",
            "{'type':'array','items':{'type':'string','maxLength':4},'maxItems':3}",
            "{'properties':{'n':{'type':'number','minimum':-1.5}},'additionalProperties':true}",
            "{'anyOf':[{'type':'string','maxLength':5},{'type':'string','pattern':'^x.*y$'}]}",
            "{'type':'object','additionalProperties':{'type':'string'},'minProperties':1,"
                + "'maxProperties':3}");
    Grammar grammar = Texts.schema(schemas.get(random.nextInt(schemas.size())));
    List<byte[]> tokens =
        Texts.cut(
            List.of(
                "\"hello world\"",
                "x€yéz\uD83D\uDE00\"]",
                "\\n\\ud83d\\ude00\"}",
                "{\"n\": -1.25}",
                "[\"ab\",\"c\", \"\"]",
                "\u2028x\u2029",
                "xxxxyyyy"),
            120,
            random);
    TokenVocabulary vocabulary = Texts.vocabulary(tokens);
    MaskCache cache = new MaskCache(vocabulary, 1 << 16);
    for (int answer = 0; answer < 4; answer++) {
      Matcher matcher = new Matcher(grammar, vocabulary);
      for (int step = 0; step < 40 && !matcher.isFinished(); step++) {
        long[] mask = cache.mask(matcher);
        List<Integer> allowed = new ArrayList<>();
        for (int token = 0; token < vocabulary.size() - 1; token++) {
          boolean possible = matcher.allows(token);
          assertThat(Texts.isAllowed(mask, token)).as("token %d", token).isEqualTo(possible);
          if (possible) {
            allowed.add(token);
          }
        }
        assertThat(Texts.isAllowed(mask, vocabulary.size() - 1)).isEqualTo(matcher.isComplete());
        assertThat(allowed.isEmpty()).isEqualTo(matcher.isFinished());
        if (!allowed.isEmpty()) {
          matcher.advance(allowed.get(random.nextInt(allowed.size())));
        }
      }
    }
  }

  /** A schema and, written out independently, all documents in the form Lily writes. */
  record FiniteSchema(String text, Set<String> documents) {
    static FiniteSchema random(Random random, int depth) {
      int kinds = depth == 0 ? 4 : 8;
      return switch (random.nextInt(kinds)) {
        case 0 -> new FiniteSchema("{'type':'boolean'}", Set.of("true", "false"));
        case 1 -> listed(random);
        case 2 -> integers(random);
        case 3 -> new FiniteSchema("{'type':'null'}", Set.of("null"));
        case 4 -> array(random, depth);
        case 5, 6 -> object(random, depth);
        default -> either(random, depth);
      };
    }

    private static FiniteSchema listed(Random random) {
      List<String> words = List.of("\"a\"", "\"ab\"", "\"é€\"", "1", "12", "true", "\"\\n\"");
      Set<String> chosen = new LinkedHashSet<>();
      for (int i = 0; i < 1 + random.nextInt(3); i++) {
        chosen.add(words.get(random.nextInt(words.size())));
      }
      return new FiniteSchema("{'enum':[" + String.join(",", chosen) + "]}", chosen);
    }

    private static FiniteSchema integers(Random random) {
      int min = random.nextInt(30) - 15;
      int max = min + random.nextInt(30);
      Set<String> values = new LinkedHashSet<>();
      int step = 1 + random.nextInt(3);
      for (int value = min; value <= max; value++) {
        if (value % step == 0) {
          values.add(Integer.toString(value));
        }
      }
      if (values.isEmpty()) {
        return new FiniteSchema("{'const':0}", Set.of("0"));
      }
      return new FiniteSchema(
          "{'type':'integer','minimum':%d,'maximum':%d,'multipleOf':%d}".formatted(min, max, step),
          values);
    }

    private static FiniteSchema array(Random random, int depth) {
      FiniteSchema item = random(random, depth - 1);
      int min = random.nextInt(3);
      int max = min + random.nextInt(2);
      Set<String> bodies = new LinkedHashSet<>(Set.of(""));
      Set<String> documents = new LinkedHashSet<>();
      for (int count = 0; count <= max; count++) {
        if (count >= min) {
          bodies.forEach(body -> documents.add("[" + body + "]"));
        }
        bodies = count < max ? extend(bodies, item.documents(), documents.size()) : bodies;
      }
      return new FiniteSchema(
          "{'type':'array','items':%s,'minItems':%d,'maxItems':%d}"
              .formatted(item.text(), min, max),
          documents);
    }

    private static FiniteSchema object(Random random, int depth) {
      List<String> names = List.of("a", "ab", "é");
      StringBuilder properties = new StringBuilder();
      StringBuilder required = new StringBuilder();
      Set<String> bodies = new LinkedHashSet<>(Set.of(""));
      for (int i = 0; i < 1 + random.nextInt(3); i++) {
        FiniteSchema value = random(random, depth - 1);
        boolean must = random.nextBoolean();
        String comma = i == 0 ? "" : ",";
        properties.append(comma).append("'").append(names.get(i)).append("':").append(value.text());
        if (must) {
          required
              .append(required.isEmpty() ? "" : ",")
              .append("'")
              .append(names.get(i))
              .append("'");
        }
        Set<String> members = new LinkedHashSet<>();
        for (String document : value.documents()) {
          members.add("\"" + names.get(i) + "\":" + document);
          members.add("\"" + names.get(i) + "\": " + document);
        }
        Set<String> longer = extend(bodies, members, 0);
        if (!must) {
          longer.addAll(bodies);
        }
        bodies = longer;
      }
      Set<String> documents = new LinkedHashSet<>();
      bodies.forEach(body -> documents.add("{" + body + "}"));
      return new FiniteSchema(
          "{'type':'object','properties':{%s},'required':[%s]}".formatted(properties, required),
          documents);
    }

    private static FiniteSchema either(Random random, int depth) {
      FiniteSchema one = random(random, depth - 1);
      FiniteSchema other = random(random, depth - 1);
      Set<String> documents = new LinkedHashSet<>(one.documents());
      documents.addAll(other.documents());
      return new FiniteSchema("{'anyOf':[%s,%s]}".formatted(one.text(), other.text()), documents);
    }

    /** Each body with one more part; at most one more than is of use. */
    private static Set<String> extend(Set<String> bodies, Set<String> parts, int already) {
      Set<String> longer = new LinkedHashSet<>();
      for (String body : bodies) {
        for (String part : parts) {
          if (body.isEmpty()) {
            longer.add(part);
          } else {
            longer.add(body + "," + part);
            longer.add(body + ", " + part);
          }
          if (longer.size() + already > MAX_DOCUMENTS) {
            return tooMany(longer);
          }
        }
      }
      return longer;
    }

    /** Marks a schema as too large by more documents than are looked at. */
    private static Set<String> tooMany(Set<String> documents) {
      for (int i = 0; i <= MAX_DOCUMENTS; i++) {
        documents.add("too many " + i);
      }
      return documents;
    }
  }
}
