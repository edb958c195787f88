package dev.lily.spring.openai.dto;

import org.jspecify.annotations.Nullable;

/** The body of every error. */
public record ErrorBody(Detail error) {

  /**
   * The error; all keys are always written.
   *
   * @param param path of the field that is wrong
   */
  public record Detail(
      String message, String type, @Nullable String param, @Nullable String code) {}
}
