package dev.lily.sample.clients;

/** The question with two calls of a tool that each client is asked, and its tool. */
final class Weather {
  static final String SYSTEM = "You are a helpful assistant with tools.";
  static final String QUESTION = "What is the weather in Rome and Cairo?";
  static final String TOOL = "get_weather";
  static final String DESCRIPTION = "Get the weather in a given city.";

  private Weather() {}

  static String in(String city) {
    return city.equals("Rome") ? "sunny, 25 degrees" : "clear, 33 degrees";
  }
}
