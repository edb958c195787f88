package dev.lily.engine.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class Bf16Test {

  @ParameterizedTest
  @CsvSource({
    "0x1p0f, 0x3f80",
    "-0x1p0f, 0xbf80",
    "0x1.01p0f, 0x3f80", // a tie between 0x3f80 and 0x3f81 goes to the even one
    "0x1.03p0f, 0x3f82", // a tie between 0x3f81 and 0x3f82
    "0x1.010002p0f, 0x3f81",
    "0x1.fffffep127f, 0x7f80", // the largest float rounds to infinity
    "-Infinity, 0xff80",
    "-0f, 0x8000"
  })
  void roundsToTheNearestWithTiesToEven(String value, String pattern) {
    assertThat(Bf16.fromFloat(Float.parseFloat(value)))
        .isEqualTo((short) Integer.decode(pattern).intValue());
  }

  @Test
  void keepsEveryPatternButNotTheSignallingBitOfNan() {
    for (int pattern = 0; pattern < 1 << 16; pattern++) {
      float value = Bf16.toFloat((short) pattern);
      short back = Bf16.fromFloat(value);
      if (Float.isNaN(value)) {
        assertThat(Bf16.toFloat(back)).isNaN();
      } else {
        assertThat(back).isEqualTo((short) pattern);
      }
    }
  }

  @Test
  void keepsANanWhosePayloadLiesInTheLowerHalf() {
    assertThat(Bf16.toFloat(Bf16.fromFloat(Float.intBitsToFloat(0x7f800001)))).isNaN();
  }
}
