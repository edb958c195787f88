package dev.lily.engine.backend;

/** Whether a back end can run on this machine. */
public sealed interface Availability {
  /**
   * It can.
   *
   * @param device the device in words, for example the CPU's or GPU's name
   */
  record Available(String device) implements Availability {}

  /**
   * It cannot.
   *
   * @param reason what is missing
   * @param remedy what a user can do about it
   */
  record Unavailable(String reason, String remedy) implements Availability {}
}
