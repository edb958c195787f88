package dev.lily.engine.sampling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SamplerStateTest {
  private static final SamplingParameters REPETITION =
      SamplingParameters.of(SamplingOptions.builder().repetitionPenalty(1.3).build(), 0, -1);
  private static final SamplingParameters PLAIN =
      SamplingParameters.of(SamplingOptions.NONE, 0, -1);

  @Test
  void countsStepsAndTokens() {
    SamplerState state = new SamplerState(130);
    state.begin(PLAIN, new int[0]);
    assertThat(state.step()).isZero();
    assertThat(state.lastToken()).isEqualTo(-1);
    state.accept(129);
    state.accept(5);
    state.accept(129);
    assertThat(state.step()).isEqualTo(3);
    assertThat(state.count(129)).isEqualTo(2);
    assertThat(state.count(5)).isEqualTo(1);
    assertThat(state.count(65)).isZero();
    assertThat(state.lastToken()).isEqualTo(129);
  }

  @Test
  void knowsItsSize() {
    assertThat(new SamplerState(65).bytes()).isEqualTo(65 * 8 + 2 * 16);
  }

  @Test
  void holdsEachTouchedTokenOnce() {
    SamplerState state = new SamplerState(130);
    state.begin(REPETITION, new int[] {1, 65, 129, 1});
    state.accept(65);
    state.accept(2);
    assertThat(state.numTouched()).isEqualTo(4);
    assertThat(new int[] {state.touched(0), state.touched(1), state.touched(2), state.touched(3)})
        .containsExactly(1, 65, 129, 2);
  }

  @Test
  void takesTokensBack() {
    SamplerState state = new SamplerState(130);
    state.begin(REPETITION, new int[] {1, 65});
    state.accept(65);
    state.accept(2);
    state.accept(2);
    state.accept(65);
    state.accept(129);
    state.rewind(new int[] {2, 2, 65, 129}, 4, 1);
    assertThat(state.step()).isEqualTo(2);
    assertThat(state.lastToken()).isEqualTo(2);
    assertThat(state.count(2)).isEqualTo(1);
    assertThat(state.count(65)).isEqualTo(1);
    assertThat(state.count(129)).isZero();
    assertThat(state.numTouched()).as("1 and 65 of the prompt, and 2").isEqualTo(3);
    state.accept(129);
    assertThat(state.numTouched()).isEqualTo(4);
  }

  @Test
  void forgetsEverythingWhenBegunAgain() {
    SamplerState state = new SamplerState(130);
    state.begin(REPETITION, new int[] {1, 65, 129});
    state.accept(7);
    state.mask(new long[3]);
    state.begin(PLAIN, new int[] {3});
    assertThat(state.step()).isZero();
    assertThat(state.count(7)).isZero();
    assertThat(state.lastToken()).isEqualTo(-1);
    assertThat(state.isMasked()).isFalse();
    assertThat(state.numTouched()).isZero();
    state.accept(1);
    assertThat(state.numTouched()).isEqualTo(1);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 13, 63, 64, 65, 128, 130})
  void masksAsBitByBitWould(int vocabularySize) {
    SamplerState state = new SamplerState(vocabularySize);
    int words = (vocabularySize + 63) / 64;
    for (long pattern : new long[] {0, -1, 1, 1L << 63, 0x5555555555555555L, 0xFFFF0000FFFF0000L}) {
      long[] allowed = new long[words];
      allowed[words - 1] = pattern;
      allowed[0] ^= pattern >>> 3;
      state.mask(allowed);
      float[] logits = new float[vocabularySize];
      state.applyMask(logits);
      int numAllowed = 0;
      for (int token = 0; token < vocabularySize; token++) {
        boolean isAllowed = (allowed[token >> 6] >>> (token & 63) & 1) == 1;
        assertThat(logits[token]).isEqualTo(isAllowed ? 0 : Float.NEGATIVE_INFINITY);
        numAllowed += isAllowed ? 1 : 0;
      }
      assertThat(state.numAllowed()).isEqualTo(numAllowed);
    }
  }

  @Test
  void copiesTheMaskAndLiftsIt() {
    SamplerState state = new SamplerState(4);
    long[] allowed = {0b0010};
    state.mask(allowed);
    allowed[0] = 0b1111;
    assertThat(state.numAllowed()).isEqualTo(1);
    state.mask(null);
    assertThat(state.numAllowed()).isEqualTo(4);
  }

  @Test
  void refusesAMaskOfAnotherLength() {
    SamplerState state = new SamplerState(65);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> state.mask(new long[1]))
        .withMessage("Token mask has 1 words; a vocabulary of 65 needs 2");
    assertThat(state.isMasked()).isFalse();
  }

  @Test
  void refusesABiasOutsideTheVocabularyAndStaysAsItWas() {
    SamplerState state = new SamplerState(10);
    state.begin(REPETITION, new int[] {4});
    SamplingOptions options = SamplingOptions.builder().logitBias(Map.of(2, 1.0, 10, 1.0)).build();
    assertThatExceptionOfType(InvalidSamplingException.class)
        .isThrownBy(() -> state.begin(SamplingParameters.of(options, 0, -1), new int[0]))
        .withMessage("logitBias names token id 10; the model's ids end at 9")
        .matches(e -> e.option().equals("logitBias"));
    assertThat(state.parameters()).isSameAs(REPETITION);
    assertThat(state.numTouched()).isEqualTo(1);
  }

  @ParameterizedTest
  @ValueSource(ints = {-1, 10, Integer.MAX_VALUE, Integer.MIN_VALUE})
  void refusesTokensOutsideTheVocabulary(int token) {
    SamplerState state = new SamplerState(10);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> state.begin(REPETITION, new int[] {3, token}))
        .withMessage("Prompt token id is " + token + "; ids run from 0 to 9");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> state.accept(token))
        .withMessage("Generated token id is " + token + "; ids run from 0 to 9");
    assertThat(state.numTouched()).isZero();
    assertThat(state.step()).isZero();
  }
}
