package dev.lily.spring.openai.dto;

/**
 * A model that can be asked.
 *
 * @param object always {@code model}
 * @param created seconds since the epoch; when the endpoint was started
 */
public record Model(String id, String object, long created, String ownedBy) {

  public static Model of(String id, long created) {
    return new Model(id, "model", created, "lily");
  }
}
