package dev.lily.spring.openai.dto;

import java.util.List;

/**
 * The models that can be asked.
 *
 * @param object always {@code list}
 */
public record ModelList(String object, List<Model> data) {

  public static ModelList of(List<Model> models) {
    return new ModelList("list", models);
  }
}
