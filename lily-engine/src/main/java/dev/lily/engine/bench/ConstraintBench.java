package dev.lily.engine.bench;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.lily.engine.constraint.Grammar;
import dev.lily.engine.constraint.MaskCache;
import dev.lily.engine.constraint.Matcher;
import dev.lily.engine.constraint.OutputConstraint;
import dev.lily.engine.constraint.TokenVocabulary;
import dev.lily.engine.tokenizer.Tokenizer;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;

/**
 * Measures what a constraint costs per token: {@code ConstraintBench [MODEL_DIRECTORY]}. Without a
 * model, the vocabulary is made up: as many tokens as the 35B has, of the kinds and lengths that
 * byte-pair encodings learn. Answers follow a random walk that prefers tokens with letters, because
 * a uniform one would close every string at once.
 */
public final class ConstraintBench {
  private static final int VOCABULARY_SIZE = 248_320;
  private static final int MAX_TOKENS = 200;
  private static final int ANSWERS = 40;

  private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

  private ConstraintBench() {}

  public static void main(String[] arguments) {
    long start = System.nanoTime();
    byte[][] texts =
        arguments.length > 0 ? texts(Tokenizer.read(Path.of(arguments[0]))) : madeUp(new Random(1));
    TokenVocabulary vocabulary =
        new TokenVocabulary(texts, new int[] {texts.length - 1}, List.of());
    System.out.printf(
        "%,d tokens arranged in %d ms, %.1f MB%n",
        vocabulary.size(), (System.nanoTime() - start) / 1_000_000, vocabulary.bytes() / 1e6);
    System.out.println(
        "| constraint | compile ms | cold µs median | 95 % | max | warm µs | masks | tokens | µs per"
            + " token |");
    System.out.println("|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    constraints().values().forEach(c -> walk(c, "", vocabulary, texts)); // Warms the JVM up.
    constraints().forEach((name, constraint) -> walk(constraint, name, vocabulary, texts));
  }

  private static Map<String, OutputConstraint> constraints() {
    Map<String, OutputConstraint> constraints = new LinkedHashMap<>();
    constraints.put(
        "flat record",
        schema(
            "{'type':'object','properties':{'city':{'type':'string'},'days':{'type':'integer'},"
                + "'sunny':{'type':'boolean'}},'required':['city','days','sunny'],"
                + "'additionalProperties':false}"));
    constraints.put(
        "nested, enums, bounds",
        schema(
            "{'type':'object','properties':{'kind':{'enum':['order','refund','question']},"
                + "'items':{'type':'array','maxItems':8,'items':{'type':'object','properties':{"
                + "'sku':{'type':'string','pattern':'^[A-Z]{3}-[0-9]{4}$'},"
                + "'count':{'type':'integer','minimum':1,'maximum':99},"
                + "'note':{'type':'string','maxLength':80}},'required':['sku','count']}},"
                + "'total':{'type':'number','minimum':0},'when':{'type':'string','format':'date'}},"
                + "'required':['kind','items']}"));
    constraints.put(
        "recursive tree",
        schema(
            "{'$ref':'#/$defs/n','$defs':{'n':{'type':'object','properties':{'name':{'type':"
                + "'string'},'kids':{'type':'array','items':{'$ref':'#/$defs/n'}}},"
                + "'required':['name','kids']}}}"));
    StringBuilder wide = new StringBuilder("{'type':'object','properties':{");
    for (int i = 0; i < 60; i++) {
      wide.append(i == 0 ? "" : ",").append("'field_%02d':{'type':'string'}".formatted(i));
    }
    constraints.put("60 optional properties", schema(wide.append("}}").toString()));
    constraints.put("json_object", new OutputConstraint.JsonObject());
    constraints.put(
        "pattern, unanchored", schema("{'type':'string','pattern':'[0-9]{4}','maxLength':60}"));
    constraints.put(
        "regex", new OutputConstraint.Regex("(The|A) [a-z]{2,12}( [a-z]{2,12}){3,40}\\."));
    return constraints;
  }

  private static OutputConstraint schema(String text) {
    return OutputConstraint.JsonSchema.parse(text.replace('\'', '"'));
  }

  private static void walk(
      OutputConstraint constraint, String name, TokenVocabulary vocabulary, byte[][] texts) {
    long compile = System.nanoTime();
    Grammar grammar = Grammar.compile(constraint);
    compile = System.nanoTime() - compile;
    List<Long> cold = new ArrayList<>();
    List<Long> warm = new ArrayList<>();
    long total = 0;
    MaskCache cache = new MaskCache(vocabulary, 256L << 20);
    for (int answer = 0; answer < ANSWERS; answer++) {
      Random random = new Random(answer);
      Matcher matcher = new Matcher(grammar, vocabulary);
      for (int i = 0; i < MAX_TOKENS && !matcher.isFinished(); i++) {
        long misses = cache.misses();
        long start = time();
        long[] mask = cache.mask(matcher);
        long computed = time() - start;
        int token = choose(mask, texts, random);
        if (token < 0) {
          break;
        }
        long chosen = time();
        mask = cache.mask(matcher);
        long again = time();
        matcher.advance(token);
        long advanced = time() - again;
        warm.add(again - chosen + advanced);
        total += computed + advanced;
        if (cache.misses() > misses) {
          cold.add(computed + advanced);
        }
      }
    }
    if (!name.isEmpty()) {
      System.out.printf(
          "| %s | %.1f | %.0f | %.0f | %.0f | %.1f | %d | %d | %.1f |%n",
          name,
          compile / 1e6,
          at(cold, 0.5),
          at(cold, 0.95),
          at(cold, 1),
          at(warm, 0.5),
          cold.size(),
          warm.size(),
          total / 1e3 / warm.size());
    }
  }

  /** Processor time of this thread: what others do on the machine does not count. */
  private static long time() {
    return THREADS.getCurrentThreadCpuTime();
  }

  private static double at(List<Long> nanos, double quantile) {
    long[] sorted = nanos.stream().mapToLong(Long::longValue).sorted().toArray();
    return sorted.length == 0 ? 0 : sorted[(int) (quantile * (sorted.length - 1))] / 1e3;
  }

  /** An allowed token near a random place; one with a letter if there is one near. */
  private static int choose(long[] mask, byte[][] texts, Random random) {
    int start = random.nextInt(texts.length);
    int found = -1;
    for (int i = 0; i < texts.length; i++) {
      int token = (start + i) % texts.length;
      if ((mask[token >> 6] & (1L << token)) != 0 && texts[token] != null) {
        found = found < 0 ? token : found;
        if (texts[token][0] >= 'a' || i > texts.length / 50) {
          return token;
        }
      }
    }
    return found;
  }

  private static byte[][] texts(Tokenizer tokenizer) {
    byte[][] texts = new byte[tokenizer.vocabularySize()][];
    for (int id = 0; id < texts.length; id++) {
      texts[id] = tokenizer.bytes(id);
    }
    return texts;
  }

  /** Words, pieces of words, digits, code, white space, other scripts, and halves of characters. */
  private static byte[][] madeUp(Random random) {
    Set<String> seen = new LinkedHashSet<>();
    List<byte[]> tokens = new ArrayList<>();
    for (int b = 0; b < 256; b++) {
      tokens.add(new byte[] {(byte) b});
    }
    String code = "\"\"\"\":,{}[]()<>=;/\\\\.-_ \n\t'#";
    while (tokens.size() < VOCABULARY_SIZE) {
      StringBuilder text = new StringBuilder();
      int kind = random.nextInt(100);
      if (kind < 62) {
        text.append(random.nextInt(5) < 3 ? " " : "");
        int length = 2 + random.nextInt(4) + random.nextInt(6);
        for (int i = 0; i < length; i++) {
          String letters = i % 2 == 0 ? "tnsrhldcmfpgwybvk" : "eaoiu";
          char c =
              letters.charAt((int) (letters.length() * random.nextDouble() * random.nextDouble()));
          text.append(i == 0 && random.nextInt(4) == 0 ? Character.toUpperCase(c) : c);
        }
      } else if (kind < 85) {
        int base = List.of(0x4E00, 0x3041, 0x0430, 0xAC00, 0x0627, 0x0905).get(random.nextInt(6));
        int length = 1 + random.nextInt(base == 0x0430 ? 8 : 4);
        for (int i = 0; i < length; i++) {
          text.appendCodePoint(base + random.nextInt(base == 0x4E00 ? 6000 : 40));
        }
      } else {
        int length = 2 + random.nextInt(4);
        for (int i = 0; i < length; i++) {
          boolean letter = random.nextInt(3) == 0;
          text.append(
              letter
                  ? (char) ('a' + random.nextInt(26))
                  : code.charAt(random.nextInt(code.length())));
        }
      }
      byte[] bytes = text.toString().getBytes(UTF_8);
      if (random.nextInt(100) == 0 && bytes[0] < 0 && bytes.length > 3) {
        bytes = Arrays.copyOfRange(bytes, random.nextInt(2), bytes.length - 1);
      }
      if (seen.add(new String(bytes, java.nio.charset.StandardCharsets.ISO_8859_1))) {
        tokens.add(bytes);
      }
    }
    return tokens.toArray(byte[][]::new);
  }
}
