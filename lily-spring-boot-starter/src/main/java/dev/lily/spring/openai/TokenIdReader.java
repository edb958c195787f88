package dev.lily.spring.openai;

import dev.lily.engine.tokenizer.TokenizerException;
import java.util.ArrayList;
import java.util.List;
import tools.jackson.databind.JsonNode;

/** Reads arrays of token ids. */
final class TokenIdReader {
  private TokenIdReader() {}

  /**
   * Reads ids, whose existence it does not check.
   *
   * @param path of the array, for errors
   */
  static List<Integer> read(FieldReader fields, String path, JsonNode array) {
    List<Integer> ids = new ArrayList<>(array.size());
    for (JsonNode id : array) {
      if (!id.isIntegralNumber() || !id.canConvertToInt()) {
        throw fields.wrongType(path + "[" + ids.size() + "]", id, "a token id");
      }
      ids.add(id.intValue());
    }
    if (ids.isEmpty()) {
      throw ApiError.invalidValue(path, path + " is empty; send at least one token id.")
          .exception();
    }
    return ids;
  }

  /**
   * The text of ids, of which there may be as many as the model's context holds: a short id can
   * stand for a long text.
   *
   * @param path of the array, for errors
   */
  static String text(List<Integer> ids, ServedModel model, String path) {
    if (ids.size() > model.contextLength()) {
      throw ApiError.invalidValue(
              path,
              "%s has %d token ids; at most %d are allowed."
                  .formatted(path, ids.size(), model.contextLength()))
          .exception();
    }
    try {
      return model.tokenizer().decode(ids.stream().mapToInt(Integer::intValue).toArray());
    } catch (TokenizerException e) {
      throw ApiError.invalidValue(path, String.valueOf(e.getMessage())).exception();
    }
  }
}
