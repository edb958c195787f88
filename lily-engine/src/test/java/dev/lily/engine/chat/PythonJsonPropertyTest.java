package dev.lily.engine.chat;

import static org.assertj.core.api.Assertions.assertThat;

import net.jqwik.api.Assume;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.JsonNodeFactory;

class PythonJsonPropertyTest {

  @Property
  void floatsReadBackAsThemselves(@ForAll long bits) {
    double value = Double.longBitsToDouble(bits);
    Assume.that(Double.isFinite(value));

    assertThat(Double.parseDouble(PythonJson.repr(value))).isEqualTo(value);
  }

  @Property
  void floatsTakeNoMoreDigitsThanJavas(@ForAll double value) {
    Assume.that(Double.isFinite(value));

    assertThat(significantDigits(PythonJson.repr(value)))
        .hasSizeLessThanOrEqualTo(significantDigits(Double.toString(value)).length());
  }

  @Property
  void stringsReadBackAsThemselves(@ForAll String text) {
    String json = PythonJson.write(JsonNodeFactory.instance.stringNode(text), "p");

    assertThat(JsonMapper.shared().readTree(json).stringValue()).isEqualTo(text);
  }

  private static String significantDigits(String number) {
    String digits = number.replaceFirst("[eE].*", "").replaceAll("[-.]", "");
    return digits.replaceFirst("^0+", "").replaceFirst("0+$", "");
  }
}
