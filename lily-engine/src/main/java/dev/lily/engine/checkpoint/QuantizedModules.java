package dev.lily.engine.checkpoint;

import static dev.lily.engine.checkpoint.MessageText.quoted;

import dev.lily.engine.checkpoint.CheckpointException.Kind;
import dev.lily.engine.checkpoint.Quantization.Setting;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeSet;

/**
 * Checks that the tensors of each quantised module, {@code .weight}, {@code .scales} and {@code
 * .biases}, agree with the settings of {@code config.json}. Packed codes of another width have
 * another shape, so a wrong setting shows here instead of as fluent nonsense.
 */
final class QuantizedModules {
  private static final String WEIGHT = ".weight";
  private static final String SCALES = ".scales";
  private static final String BIASES = ".biases";

  private final Path configFile;
  private final Optional<Quantization> quantization;
  private final SortedMap<String, TensorEntry> tensors;

  private QuantizedModules(
      Path configFile,
      Optional<Quantization> quantization,
      SortedMap<String, TensorEntry> tensors) {
    this.configFile = configFile;
    this.quantization = quantization;
    this.tensors = tensors;
  }

  /**
   * Checks all modules in the order of their names.
   *
   * @param configFile named in messages
   * @throws CheckpointException naming tensor, actual and expected form
   */
  static void check(
      Path configFile,
      Optional<Quantization> quantization,
      SortedMap<String, TensorEntry> tensors) {
    QuantizedModules modules = new QuantizedModules(configFile, quantization, tensors);
    modules.packedModules().forEach(modules::checkPacked);
    quantization.ifPresent(
        settings ->
            settings
                .overrides()
                .forEach(
                    (module, setting) -> {
                      if (setting.isPresent() && !UnusedTensors.contain(module)) {
                        modules.requireNotDense(module);
                      }
                    }));
  }

  /** Modules that have scales, offsets or packed words. */
  private SortedSet<String> packedModules() {
    SortedSet<String> modules = new TreeSet<>();
    for (Map.Entry<String, TensorEntry> entry : tensors.entrySet()) {
      String name = entry.getKey();
      if (UnusedTensors.contain(name)) {
        continue;
      }
      if (name.endsWith(SCALES)) {
        modules.add(moduleOf(name, SCALES));
      } else if (name.endsWith(BIASES)) {
        modules.add(moduleOf(name, BIASES));
      } else if (name.endsWith(WEIGHT) && entry.getValue().dtype().equals("U32")) {
        modules.add(moduleOf(name, WEIGHT));
      }
    }
    return modules;
  }

  private static String moduleOf(String name, String suffix) {
    return name.substring(0, name.length() - suffix.length());
  }

  private void checkPacked(String module) {
    if (quantization.isEmpty()) {
      throw corrupt(
          "Module %s has quantised tensors, but config.json has no 'quantization' block. Its bits and group size cannot be guessed: fetch the conversion's own config.json"
              .formatted(quoted(module)));
    }
    Optional<Setting> setting = quantization.get().of(module);
    if (setting.isEmpty()) {
      throw corrupt(
          "Module %s has quantised tensors, but 'quantization' says it is not quantised: fetch the conversion's own config.json"
              .formatted(quoted(module)));
    }
    requireComplete(module);
    TensorEntry weight = Objects.requireNonNull(tensors.get(module + WEIGHT));
    TensorEntry scales = Objects.requireNonNull(tensors.get(module + SCALES));
    TensorEntry biases = Objects.requireNonNull(tensors.get(module + BIASES));
    requireDtype(weight, "U32");
    requireSameDtype(scales, biases);
    requireDtype(scales, "BF16");
    requireShapes(module, setting.get(), weight.shape(), scales.shape(), biases.shape());
  }

  private void requireComplete(String module) {
    List<String> missing = new ArrayList<>();
    for (String suffix : List.of(WEIGHT, SCALES, BIASES)) {
      if (!tensors.containsKey(module + suffix)) {
        missing.add(module + suffix);
      }
    }
    if (!missing.isEmpty()) {
      throw corrupt(
          "Module %s is quantised but lacks %s. Is the download complete?"
              .formatted(quoted(module), MessageText.listed(missing)));
    }
  }

  private void requireSameDtype(TensorEntry scales, TensorEntry biases) {
    if (!scales.dtype().equals(biases.dtype())) {
      throw corrupt(
          "Tensor %s has dtype %s, but %s has %s; they must be of one dtype, BF16. Fetch the file again"
              .formatted(
                  quoted(biases.name()), biases.dtype(), quoted(scales.name()), scales.dtype()));
    }
  }

  private void requireDtype(TensorEntry tensor, String dtype) {
    if (!tensor.dtype().equals(dtype)) {
      throw new CheckpointException(
          Kind.UNSUPPORTED,
          tensor.file(),
          "Tensor %s of a quantised module has dtype %s; Lily reads %s there. Take a conversion made from bfloat16 weights"
              .formatted(quoted(tensor.name()), tensor.dtype(), dtype));
    }
  }

  private void requireShapes(
      String module, Setting setting, List<Long> weight, List<Long> scales, List<Long> biases) {
    if (weight.size() < 2) {
      throw corrupt(
          "Tensor %s is %s; a quantised weight has at least two dimensions"
              .formatted(quoted(module + WEIGHT), weight));
    }
    if (!biases.equals(scales)) {
      throw corrupt(
          "Tensor %s is %s; expected %s, the shape of %s"
              .formatted(quoted(module + BIASES), biases, scales, quoted(module + SCALES)));
    }
    List<Long> rows = weight.subList(0, weight.size() - 1);
    if (scales.size() != weight.size() || !scales.subList(0, rows.size()).equals(rows)) {
      throw corrupt(
          "Tensor %s is %s and %s is %s; all dimensions but the last must be equal"
              .formatted(quoted(module + WEIGHT), weight, quoted(module + SCALES), scales));
    }
    long words = weight.getLast();
    long expectedWords = scales.getLast() * setting.groupSize() * setting.bits() / 32;
    if (words != expectedWords) {
      List<Long> expected = new ArrayList<>(rows);
      expected.add(expectedWords);
      throw corrupt(
          "Tensor %s is %s; expected %s, since 'quantization' asks for %d bits in groups of %d and %s is %s. %s"
              .formatted(
                  quoted(module + WEIGHT),
                  weight,
                  expected,
                  setting.bits(),
                  setting.groupSize(),
                  quoted(module + SCALES),
                  scales,
                  likelyCause(module, words, scales.getLast())));
    }
  }

  /** Which settings the shapes would fit: the product of bits and group size is all they tell. */
  private String likelyCause(String module, long words, long groups) {
    List<String> fitting = new ArrayList<>();
    for (int bits : new int[] {4, 8}) {
      for (int groupSize : new int[] {32, 64, 128}) {
        if (words * 32 == groups * groupSize * bits) {
          fitting.add("%d bits in groups of %d".formatted(bits, groupSize));
        }
      }
    }
    if (fitting.isEmpty()) {
      return "No supported setting fits: fetch the files again";
    }
    boolean hasOverride = quantization.orElseThrow().overrides().containsKey(module);
    return "The shapes fit %s: is the override for this module %s?"
        .formatted(String.join(" or ", fitting), hasOverride ? "wrong" : "missing");
  }

  private void requireNotDense(String module) {
    if (tensors.containsKey(module + WEIGHT) && !tensors.containsKey(module + SCALES)) {
      throw corrupt(
          "'quantization' has settings for module %s, but tensor %s is missing"
              .formatted(quoted(module), quoted(module + SCALES)));
    }
  }

  private CheckpointException corrupt(String message) {
    return new CheckpointException(Kind.CORRUPT, configFile, message);
  }
}
