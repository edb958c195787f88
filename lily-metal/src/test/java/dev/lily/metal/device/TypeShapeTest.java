package dev.lily.metal.device;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class TypeShapeTest {
  @ParameterizedTest
  @CsvSource(
      quoteCharacter = '`',
      delimiter = '|',
      textBlock =
          """
          v40@0:8@16Q24Q32 | vwww
          @48@0:8^v16Q24Q32@?40 | wwwww
          @48@0:8^v16Q24Q32@?<v@?^vQ>40 | wwwww
          v64@0:8{?=QQQ}16{?=QQQ}40 | v{www}{www}
          v64@0:8{MTLSize="width"Q"height"Q"depth"Q}16{MTLSize=QQQ}40 | v{www}{www}
          B24@0:8q16 | bw
          c24@0:8q16 | bw
          d16@0:8 | d
          @40@0:8@"NSString"16@"MTLCompileOptions"24^@32 | wwww
          v48@0:8r^@16r^Q24{_NSRange=QQ}32 | vww{ww}
          v32@0:8^{CGColor=}16^?24 | vww
          v24@0:8^^{a={b=i}}16 | vw
          """)
  void readsWhatTheRuntimeGives(String encoding, String shape) {
    assertThat(TypeShape.ofMethod(encoding)).hasValue(shape);
  }

  @ParameterizedTest
  @CsvSource({"v20@0:8i16", "v24@0:8f16", "v", "v24@0:8{open16"})
  void doesNotGuess(String encoding) {
    assertThat(TypeShape.ofMethod(encoding)).isEmpty();
  }
}
