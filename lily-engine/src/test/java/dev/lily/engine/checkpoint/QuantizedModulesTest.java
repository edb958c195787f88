package dev.lily.engine.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatNoException;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.lily.engine.checkpoint.CheckpointException.Kind;
import dev.lily.engine.checkpoint.Quantization.Setting;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

class QuantizedModulesTest {
  private static final Path CONFIG = Path.of("config.json");
  private static final Path SHARD = Path.of("model.safetensors");
  private static final Optional<Quantization> FOUR_BITS =
      Optional.of(
          new Quantization(
              64, 4, Map.of("router", Optional.of(new Setting(64, 8)), "plain", Optional.empty())));

  private final SortedMap<String, TensorEntry> tensors = new TreeMap<>();

  @Test
  void acceptsStacksOverridesAndDenseTensors() {
    triple("experts", new long[] {16, 32, 16}, new long[] {16, 32, 2});
    triple("router", new long[] {16, 32}, new long[] {16, 2});
    add("plain.weight", "BF16", 16, 128);
    add("norm.weight", "BF16", 128);

    assertThatNoException().isThrownBy(() -> check(FOUR_BITS));
  }

  @Test
  void leavesUnusedPartsAlone() {
    add("mtp.fc.weight", "U32", 3, 3);
    add("vision_tower.blocks.0.scales", "F8_E4M3", 3);
    add("model.visual.merger.biases", "I64", 1);

    assertThatNoException().isThrownBy(() -> check(FOUR_BITS));
    assertThatNoException().isThrownBy(() -> check(Optional.empty()));
  }

  @Test
  void refusesQuantisedTensorsWithoutSettings() {
    triple("a", new long[] {16, 16}, new long[] {16, 2});

    assertThat(refusal(Optional.empty()))
        .hasMessageContaining("'a'")
        .hasMessageContaining("no 'quantization' block");
  }

  @Test
  void refusesQuantisedTensorsOfAModuleDeclaredPlain() {
    triple("plain", new long[] {16, 16}, new long[] {16, 2});

    assertThat(refusal(FOUR_BITS))
        .hasMessageContaining("'plain'")
        .hasMessageContaining("not quantised");
  }

  @Test
  void refusesSettingsForADenseModule() {
    add("router.weight", "BF16", 16, 128);

    assertThat(refusal(FOUR_BITS)).hasMessageContaining("'router.scales' is missing");
  }

  @Test
  void namesEveryMissingPartOfAModule() {
    add("a.scales", "BF16", 16, 2);

    assertThat(refusal(FOUR_BITS)).hasMessageContaining("lacks 'a.weight', 'a.biases'");
  }

  @Test
  void refusesScalesOfAnotherNumberOfRows() {
    triple("a", new long[] {16, 16}, new long[] {8, 2});

    assertThat(refusal(FOUR_BITS))
        .hasMessageContaining("'a.weight' is [16, 16] and 'a.scales' is [8, 2]");
  }

  @Test
  void refusesBiasesThatAreNotShapedAsTheScales() {
    triple("a", new long[] {16, 16}, new long[] {16, 2});
    add("a.biases", "BF16", 16, 4);

    assertThat(refusal(FOUR_BITS)).hasMessageContaining("'a.biases' is [16, 4]; expected [16, 2]");
  }

  @Test
  void refusesAWeightOfOneDimension() {
    triple("a", new long[] {16}, new long[] {2});

    assertThat(refusal(FOUR_BITS)).hasMessageContaining("at least two dimensions");
  }

  @Test
  void refusesAWidthThatFitsNoSetting() {
    triple("a", new long[] {16, 17}, new long[] {16, 2});

    assertThat(refusal(FOUR_BITS))
        .hasMessageContaining("'a.weight' is [16, 17]; expected [16, 16]")
        .hasMessageContaining("No supported setting fits");
  }

  @Test
  void saysThatAnOverrideIsWrongWhereThereIsOne() {
    triple("router", new long[] {16, 16}, new long[] {16, 2});

    assertThat(refusal(FOUR_BITS))
        .hasMessageContaining("expected [16, 32]")
        .hasMessageContaining("override for this module wrong");
  }

  @Test
  void refusesScalesOfHalfPrecisionAsUnsupported() {
    triple("a", new long[] {16, 16}, new long[] {16, 2});
    add("a.scales", "F16", 16, 2);
    add("a.biases", "F16", 16, 2);

    assertThat(refusal(FOUR_BITS).kind()).isEqualTo(Kind.UNSUPPORTED);
    assertThat(refusal(FOUR_BITS)).hasMessageContaining("'a.scales'").hasMessageContaining("F16");
  }

  @Test
  void refusesPackedWordsOfAnotherType() {
    triple("a", new long[] {16, 16}, new long[] {16, 2});
    add("a.weight", "I32", 16, 16);

    assertThat(refusal(FOUR_BITS)).hasMessageContaining("'a.weight'").hasMessageContaining("I32");
  }

  private void triple(String module, long[] weight, long[] scales) {
    add(module + ".weight", "U32", weight);
    add(module + ".scales", "BF16", scales);
    add(module + ".biases", "BF16", scales);
  }

  private void add(String name, String dtype, long... shape) {
    tensors.put(
        name,
        new TensorEntry(
            name, dtype, Arrays.stream(shape).boxed().toList(), MemorySegment.NULL, SHARD));
  }

  private void check(Optional<Quantization> quantization) {
    QuantizedModules.check(CONFIG, quantization, tensors);
  }

  private CheckpointException refusal(Optional<Quantization> quantization) {
    CheckpointException e =
        catchThrowableOfType(CheckpointException.class, () -> check(quantization));
    assertThat(e).isNotNull();
    return e;
  }
}
