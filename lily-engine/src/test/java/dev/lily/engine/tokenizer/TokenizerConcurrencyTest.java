package dev.lily.engine.tokenizer;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;

class TokenizerConcurrencyTest {
  private static final int THREADS = 64;
  private static final int TEXTS = 10_000;
  private static final String[] SCRIPTS = {
    "abcdefghij 'll\n", "\u010d\u011b\u017d\u016f e\u0301", "\u4e2d\u6587\u3042\u30ab\u3099",
    "\uac00\ud55c\u1112\u1161\u11ab", "\u0627\u0644\u0633\u0644\u0627\u0645", "<|im_end|><think>",
    "0123 +-*/={}", "\u0928\u092e\u0938\u094d\u0924\u0947"
  };

  private final Tokenizer tokenizer = Tokenizer.read(TokenizerFiles.NANO);

  @Test
  void givesTheSameToManyThreadsAsToOne() throws InterruptedException {
    List<String> texts = texts();
    List<int[]> ids = texts.stream().map(tokenizer::encode).toList();
    List<String> decoded = ids.stream().map(tokenizer::decode).toList();
    Queue<String> differences = new ConcurrentLinkedQueue<>();
    CountDownLatch start = new CountDownLatch(THREADS);
    List<Thread> threads = new ArrayList<>();
    for (int t = 0; t < THREADS; t++) {
      int first = t * 31;
      Thread.Builder builder = t % 2 == 0 ? Thread.ofPlatform() : Thread.ofVirtual();
      threads.add(
          builder.start(
              () -> {
                start.countDown();
                try {
                  start.await();
                  for (int i = first; i < first + TEXTS / 4; i++) {
                    int[] found = tokenizer.encode(texts.get(i));
                    if (!Arrays.equals(found, ids.get(i))
                        || !stream(found).equals(decoded.get(i))) {
                      differences.add(texts.get(i));
                    }
                  }
                } catch (InterruptedException | RuntimeException e) {
                  differences.add(e.toString());
                }
              }));
    }
    for (Thread thread : threads) {
      thread.join();
    }
    assertThat(differences).isEmpty();
  }

  /** As {@link Tokenizer#decode} does: special tokens too. */
  private String stream(int[] ids) {
    Utf8Decoder decoder = new Utf8Decoder();
    StringBuilder text = new StringBuilder();
    for (int id : ids) {
      text.append(decoder.decode(tokenizer.bytes(id)));
    }
    return text.append(decoder.finish()).toString();
  }

  private static List<String> texts() {
    Random random = new Random(39);
    List<String> texts = new ArrayList<>();
    for (int i = 0; i < TEXTS; i++) {
      StringBuilder text = new StringBuilder();
      for (int parts = random.nextInt(6); parts >= 0; parts--) {
        String script = SCRIPTS[random.nextInt(SCRIPTS.length)];
        text.append(script, random.nextInt(script.length()), script.length());
      }
      texts.add(text.toString());
    }
    return texts;
  }
}
