package dev.lily.engine.chat;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.InstanceOfAssertFactories.type;

import java.math.BigDecimal;
import java.math.BigInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.JsonNodeFactory;
import tools.jackson.databind.node.ObjectNode;

/** Expected texts are what CPython 3.11 prints. */
class PythonJsonTest {
  private static final JsonMapper DOUBLES = JsonMapper.shared();
  private static final JsonMapper DECIMALS =
      JsonMapper.builder().enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS).build();

  private final JsonNodeFactory nodes = JsonNodeFactory.instance;

  @ParameterizedTest
  @CsvSource({
    "0.1, 0.1",
    "10.0, 10.0",
    "10.000, 10.0",
    "1e20, 1e+20",
    "1E16, 1e+16",
    "1e15, 1000000000000000.0",
    "9999999999999998.0, 9999999999999998.0",
    "123456789012345680.0, 1.2345678901234568e+17",
    "1e-4, 0.0001",
    "1e-5, 1e-05",
    "0.00012345, 0.00012345",
    "0.000012345, 1.2345e-05",
    "5e-324, 5e-324",
    "1e-323, 1e-323",
    "1.5e-323, 1.5e-323",
    "2.2250738585072014e-308, 2.2250738585072014e-308",
    "1.7976931348623157e308, 1.7976931348623157e+308",
    "2e23, 2e+23",
    "1e22, 1e+22",
    "1e23, 1e+23",
    "-1.5, -1.5",
    "-123e-7, -1.23e-05",
    "100.0, 100.0",
    "9007199254740993.0, 9007199254740992.0",
    "3.14159265358979312, 3.141592653589793",
    "0.12345678901234567890, 0.12345678901234568",
    "1e400, Infinity",
    "-1e400, -Infinity",
  })
  void writesFloatsInPythonsNotation(String json, String expected) {
    assertThat(PythonJson.write(DOUBLES.readTree(json), "p")).isEqualTo(expected);
    assertThat(PythonJson.write(DECIMALS.readTree(json), "p")).isEqualTo(expected);
  }

  @Test
  void keepsTheSignOfZeroWhereTheNodeHasOne() {
    assertThat(PythonJson.write(DOUBLES.readTree("[0.0, -0.0]"), "p")).isEqualTo("[0.0, -0.0]");
    assertThat(PythonJson.write(DECIMALS.readTree("[0.0, -0.0]"), "p")).isEqualTo("[0.0, 0.0]");
  }

  @Test
  void writesEveryDigitOfIntegers() {
    assertThat(write("[0, -0, -7, 2147483648, 9007199254740993, 18446744073709551616]"))
        .isEqualTo("[0, 0, -7, 2147483648, 9007199254740993, 18446744073709551616]");
    BigInteger huge = BigInteger.TEN.pow(200).add(BigInteger.ONE);
    assertThat(write(huge.toString())).isEqualTo(huge.toString());
  }

  @Test
  void writesNumbersThatWereNeverText() {
    ObjectNode object = nodes.objectNode();
    object.put("float", 0.1f);
    object.put("bigFloat", 3e10f);
    object.put("short", (short) 3);
    object.put("decimal", new BigDecimal("1.50"));
    object.put("nan", Double.NaN);
    object.put("infinite", Double.NEGATIVE_INFINITY);
    object.put("tiny", new BigDecimal("1e-999999999"));

    assertThat(PythonJson.write(object, "p"))
        .isEqualTo(
            "{\"float\": 0.1, \"bigFloat\": 30000000000.0, \"short\": 3, \"decimal\": 1.5, "
                + "\"nan\": NaN, \"infinite\": -Infinity, \"tiny\": 0.0}");
  }

  @Test
  void escapesOnlyWhatJsonDemands() {
    String text = "\"\\/<>&'=\u007f\u0080\u2028é零🍎\n\r\t\b\f\0\u001f";

    assertThat(PythonJson.write(nodes.stringNode(text), "p"))
        .isEqualTo("\"\\\"\\\\/<>&'=\u007f\u0080\u2028é零🍎\\n\\r\\t\\b\\f\\u0000\\u001f\"");
  }

  @Test
  void keepsTheOrderOfKeysAndEscapesThem() {
    assertThat(write("{\"b\":1,\"a\":{\"z\":[],\"\":{}},\"k\\n\":[null,true,false]}"))
        .isEqualTo("{\"b\": 1, \"a\": {\"z\": [], \"\": {}}, \"k\\n\": [null, true, false]}");
  }

  @Test
  void writesFiveHundredLevelsAndRefusesMore() {
    assertThat(PythonJson.write(nested(PythonJson.MAX_DEPTH + 1), "p"))
        .isEqualTo("[".repeat(501) + "]".repeat(501));
    for (int depth : new int[] {PythonJson.MAX_DEPTH + 2, 10_000, 100_000}) {
      ArrayNode tooDeep = nested(depth);
      assertThatThrownBy(() -> PythonJson.write(tooDeep, "tools[3]"))
          .asInstanceOf(type(InvalidConversationException.class))
          .satisfies(e -> assertThat(e.path()).isEqualTo("tools[3]"))
          .satisfies(e -> assertThat(e).hasMessageContaining("nested deeper than 500 levels"));
    }
  }

  @Test
  void refusesObjectsThatNestTooDeep() {
    ObjectNode outermost = nodes.objectNode();
    ObjectNode innermost = outermost;
    for (int i = 0; i < 10_000; i++) {
      innermost = innermost.putObject("a");
    }

    assertThatThrownBy(() -> PythonJson.write(outermost, "p"))
        .isInstanceOf(InvalidConversationException.class);
  }

  @Test
  void refusesNodesThatNoJsonTextHas() {
    for (JsonNode node :
        new JsonNode[] {
          nodes.pojoNode(new Object()), nodes.binaryNode(new byte[3]), nodes.missingNode()
        }) {
      assertThatThrownBy(() -> PythonJson.write(node, "p"))
          .isInstanceOf(InvalidConversationException.class)
          .hasMessageContaining("which no JSON text has");
    }
  }

  private static String write(String json) {
    return PythonJson.write(DOUBLES.readTree(json), "p");
  }

  private ArrayNode nested(int depth) {
    ArrayNode outermost = nodes.arrayNode();
    ArrayNode innermost = outermost;
    for (int i = 1; i < depth; i++) {
      innermost = innermost.addArray();
    }
    return outermost;
  }
}
