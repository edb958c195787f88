package dev.lily.engine.tokenizer;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class NfcTest {
  @Test
  void composesAndOrdersMarks() {
    assertThat(Nfc.normalize("e\u0301 a\u0307\u0323")).isEqualTo("\u00e9 \u1ea1\u0307");
  }

  @Test
  void replacesLoneSurrogatesAndKeepsPairs() {
    assertThat(Nfc.normalize("\udc00a\ud83d\ude00\ud800\ud83d\ude00\ud800"))
        .isEqualTo("\ufffda\ud83d\ude00\ufffd\ud83d\ude00\ufffd");
  }

  @Test
  void leavesPlainTextAlone() {
    String text = "plain \u00e9\u00df\u02ff";
    assertThat(Nfc.normalize(text)).isSameAs(text);
  }

  @Test
  void ordersAMillionCraftedMarks() {
    int n = 500_000;
    assertThat(Nfc.normalize("a" + "\u0301\u0323".repeat(n) + "!"))
        .isEqualTo("\u1ea1" + "\u0323".repeat(n - 1) + "\u0301".repeat(n) + "!");
  }

  @Test
  void keepsMarksThatDoNotMoveBetweenThoseThatDo() {
    // U+0903 has class 0 and so bounds what may be ordered.
    String half = "\u0301\u0323".repeat(50);
    String ordered = "\u0323".repeat(50) + "\u0301".repeat(50);
    assertThat(Nfc.normalize("\u0915" + half + "\u0903" + half))
        .isEqualTo("\u0915" + ordered + "\u0903" + ordered);
  }
}
