package dev.lily.engine.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

class AffineQuantizerTest {

  /** A case recorded from MLX; {@code expected} is in fp32. */
  private record Recorded(String name, AffineGroups groups, float[] expected) {
    @Override
    public String toString() {
      return name;
    }
  }

  static Stream<Recorded> recordedCases() throws IOException {
    try (InputStream in =
        AffineQuantizerTest.class.getResourceAsStream("/goldens/quant_fixture.json")) {
      JsonNode cases = new JsonMapper().readTree(in).get("cases");
      return StreamSupport.stream(cases.spliterator(), false)
          .map(
              node ->
                  new Recorded(
                      node.get("name").asString(),
                      new AffineGroups(
                          node.get("bits").asInt(),
                          node.get("group_size").asInt(),
                          words(node.get("codes")),
                          exactBf16(node.get("scales")),
                          exactBf16(node.get("biases"))),
                      floats(node.get("expected"))));
    }
  }

  private static Recorded recorded(String name) throws IOException {
    return recordedCases().filter(it -> it.name.equals(name)).findFirst().orElseThrow();
  }

  @ParameterizedTest
  @MethodSource("recordedCases")
  void dequantisesRecordedGroupsToTheLastBit(Recorded recorded) {
    assertThat(recorded.groups.dequantize()).isEqualTo(recorded.expected);
  }

  @Test
  void roundsHalvesAwayFromZeroLikeTheRecordedRamp() throws IOException {
    assertSame(AffineQuantizer.quantize(ramp(), 64, 4), recorded("ramp").groups);
  }

  @Test
  void quantisesTheRampToEightBitsLikeTheRecording() throws IOException {
    assertSame(AffineQuantizer.quantize(ramp(), 64, 8), recorded("q8_ramp").groups);
  }

  @Test
  void keepsAConstantGroupExactWithATinyNegativeScale() throws IOException {
    float[] constant = new float[64];
    Arrays.fill(constant, 3.25f);

    assertSame(AffineQuantizer.quantize(constant, 64, 4), recorded("const_1x64").groups);
  }

  @Test
  void quantisesAGroupOfZerosToZeros() {
    AffineGroups groups = AffineQuantizer.quantize(new float[64], 64, 4);

    assertThat(groups.words()).containsOnly(0);
    assertThat(groups.biases()).containsExactly((short) 0);
    assertThat(Bf16.toFloat(groups.scales()[0])).isNegative();
    assertThat(groups.dequantize()).containsOnly(0f);
  }

  @Test
  void startsFromTheHighEndWithANegativeScaleWhenThatIsLarger() {
    float[] values = new float[64];
    for (int i = 0; i < 64; i++) {
      values[i] = i % 16;
    }

    AffineGroups groups = AffineQuantizer.quantize(values, 64, 4);

    assertThat(Bf16.toFloat(groups.scales()[0])).isEqualTo(-1f);
    assertThat(Bf16.toFloat(groups.biases()[0])).isEqualTo(15f);
    assertThat(groups.code(0)).isEqualTo(15);
    assertThat(groups.code(15)).isZero();
    assertThat(groups.dequantize()).isEqualTo(values);
  }

  @Test
  void refusesAnInfiniteValueByIndex() {
    float[] values = new float[128];
    values[70] = Float.POSITIVE_INFINITY;

    assertThatIllegalArgumentException()
        .isThrownBy(() -> AffineQuantizer.quantize(values, 64, 8))
        .withMessageContaining("Value 70 is Infinity");
  }

  @Test
  void refusesARangeThatOverflows() {
    float[] values = new float[64];
    values[0] = -2e38f;
    values[1] = 2e38f;

    assertThatIllegalArgumentException()
        .isThrownBy(() -> AffineQuantizer.quantize(values, 64, 8))
        .withMessageContaining("-2.0E38 to 2.0E38");
  }

  @Test
  void refusesAPartialGroup() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> AffineQuantizer.quantize(new float[65], 64, 4))
        .withMessageContaining("65 values");
  }

  private static void assertSame(AffineGroups actual, AffineGroups expected) {
    assertThat(actual).usingRecursiveComparison().isEqualTo(expected);
  }

  /** The input of the recorded ramps: 64 values from -16 up in steps of a half. */
  private static float[] ramp() {
    float[] ramp = new float[64];
    for (int i = 0; i < 64; i++) {
      ramp[i] = -16 + i / 2f;
    }
    return ramp;
  }

  private static int[] words(JsonNode node) {
    return IntStream.range(0, node.size()).map(i -> (int) node.get(i).asLong()).toArray();
  }

  private static float[] floats(JsonNode node) {
    float[] values = new float[node.size()];
    for (int i = 0; i < values.length; i++) {
      values[i] = (float) node.get(i).asDouble();
    }
    return values;
  }

  private static short[] exactBf16(JsonNode node) {
    short[] patterns = new short[node.size()];
    for (int i = 0; i < patterns.length; i++) {
      float value = (float) node.get(i).asDouble();
      patterns[i] = Bf16.fromFloat(value);
      assertThat(Bf16.toFloat(patterns[i])).isEqualTo(value);
    }
    return patterns;
  }
}
