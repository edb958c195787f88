package dev.lily.spring.openai;

import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;

/** Reads {@code logit_bias}: an object from token ids in decimal text to numbers. */
final class LogitBiasReader {
  private static final String NAME = "logit_bias";

  private LogitBiasReader() {}

  static @Nullable Map<Integer, Double> read(FieldReader fields) {
    if (!fields.has(NAME)) {
      return null;
    }
    FieldReader biases = fields.object(NAME);
    Map<Integer, Double> read = new HashMap<>();
    for (Map.Entry<String, JsonNode> entry : biases.entries()) {
      Double bias = biases.decimal(entry.getKey());
      if (bias == null) {
        throw biases.wrongType(entry.getKey(), entry.getValue(), "a number");
      }
      read.put(tokenId(entry.getKey()), bias);
    }
    return read;
  }

  /** Takes one spelling of an id only, so that no two keys mean the same token. */
  private static int tokenId(String key) {
    try {
      int id = Integer.parseInt(key);
      if (id >= 0 && Integer.toString(id).equals(key)) {
        return id;
      }
    } catch (NumberFormatException _) {
      // Refused below.
    }
    throw ApiError.invalidValue(
            NAME, "logit_bias has the key %s; keys are token ids.".formatted(Quote.of(key)))
        .exception();
  }
}
