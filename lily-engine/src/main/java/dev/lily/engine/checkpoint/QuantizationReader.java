package dev.lily.engine.checkpoint;

import static dev.lily.engine.checkpoint.MessageText.quoted;

import dev.lily.engine.checkpoint.CheckpointException.Kind;
import dev.lily.engine.checkpoint.Quantization.Setting;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;

/**
 * Reads MLX's quantisation settings from {@code config.json}: the key {@code quantization}, or
 * {@code quantization_config} where the first is absent. Inside lie the defaults and, by module
 * name, an object of other settings, {@code false} (not quantised) or {@code true} (the default).
 */
final class QuantizationReader {
  private static final String KEY = "quantization";
  private static final String KEY_OF_TRANSFORMERS = "quantization_config";
  private static final String GROUP_SIZE = "group_size";
  private static final String BITS = "bits";
  private static final String MODE = "mode";
  private static final Set<String> DEFAULTS = Set.of(GROUP_SIZE, BITS, MODE);

  private final Path file;

  private QuantizationReader(Path file) {
    this.file = file;
  }

  /**
   * Reads the settings.
   *
   * @param file named in messages
   * @param notes receives a sentence on what is ignored
   */
  static Optional<Quantization> read(Path file, JsonNode config, List<String> notes) {
    JsonNode block = config.path(KEY);
    JsonNode other = config.path(KEY_OF_TRANSFORMERS);
    if (isAbsent(block)) {
      return isAbsent(other)
          ? Optional.empty()
          : Optional.of(new QuantizationReader(file).readBlock(KEY_OF_TRANSFORMERS, other, notes));
    }
    if (!isAbsent(other) && !other.equals(block)) {
      notes.add(
          "%s: 'quantization' and 'quantization_config' differ; the first is used".formatted(file));
    }
    return Optional.of(new QuantizationReader(file).readBlock(KEY, block, notes));
  }

  private static boolean isAbsent(JsonNode node) {
    return node.isMissingNode() || node.isNull();
  }

  private Quantization readBlock(String key, JsonNode block, List<String> notes) {
    if (!block.isObject()) {
      throw new CheckpointException(
          Kind.CORRUPT,
          file,
          "'%s' must be an object but is %s".formatted(key, quoted(block.toString())));
    }
    JsonNode method = block.path("quant_method");
    if (method.isString() && !(block.has(BITS) && block.has(GROUP_SIZE) && block.has(MODE))) {
      throw unsupported("'%s' has quant_method %s".formatted(key, quoted(method.asString())));
    }
    Setting defaults = readSetting(key, block, null);
    Map<String, Optional<Setting>> overrides = new HashMap<>();
    for (Map.Entry<String, JsonNode> property : block.properties()) {
      String module = property.getKey();
      JsonNode value = property.getValue();
      if (DEFAULTS.contains(module)) {
        continue;
      }
      if (value.isObject()) {
        overrides.put(
            module, Optional.of(readSetting(key + "." + quoted(module), value, defaults)));
      } else if (value.isBoolean()) {
        overrides.put(module, value.asBoolean() ? Optional.of(defaults) : Optional.empty());
      } else {
        notes.add(
            "%s: '%s' has %s, which is neither settings of a module nor a boolean and is ignored"
                .formatted(file, key, quoted(module)));
      }
    }
    return new Quantization(defaults.groupSize(), defaults.bits(), overrides);
  }

  private Setting readSetting(String where, JsonNode node, @Nullable Setting defaults) {
    JsonNode mode = node.path(MODE);
    if (!mode.isMissingNode() && !(mode.isString() && mode.asString().equals("affine"))) {
      throw unsupported("'%s' has mode %s".formatted(where, quoted(mode.toString())));
    }
    int groupSize =
        readInt(where, node, GROUP_SIZE, defaults == null ? null : defaults.groupSize());
    int bits = readInt(where, node, BITS, defaults == null ? null : defaults.bits());
    try {
      AffineQuantizer.requireFormat(bits, groupSize);
    } catch (IllegalArgumentException e) {
      throw unsupported("'%s' asks for %s".formatted(where, e.getMessage()));
    }
    return new Setting(groupSize, bits);
  }

  private int readInt(String where, JsonNode node, String field, @Nullable Integer otherwise) {
    JsonNode value = node.path(field);
    if (value.isMissingNode() && otherwise != null) {
      return otherwise;
    }
    if (!value.isIntegralNumber() || !value.canConvertToInt()) {
      throw new CheckpointException(
          Kind.CORRUPT,
          file,
          "'%s' must have an integer %s but has %s"
              .formatted(where, field, value.isMissingNode() ? "none" : quoted(value.toString())));
    }
    return value.asInt();
  }

  private CheckpointException unsupported(String what) {
    return new CheckpointException(
        Kind.UNSUPPORTED,
        file,
        what
            + "; Lily runs MLX affine quantisation with 4 or 8 bits. Take such a conversion of the"
            + " model");
  }
}
