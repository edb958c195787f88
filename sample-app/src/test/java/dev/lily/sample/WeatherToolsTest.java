package dev.lily.sample;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.springframework.ai.support.ToolCallbacks;
import org.springframework.ai.tool.ToolCallback;

class WeatherToolsTest {

  private final ToolCallback[] callbacks = ToolCallbacks.from(new WeatherTools());

  @Test
  void offersOneToolWithARequiredCity() {
    assertThat(callbacks).hasSize(1);
    assertThat(callbacks[0].getToolDefinition().name()).isEqualTo("get_weather");
    assertThat(callbacks[0].getToolDefinition().inputSchema())
        .contains("\"city\"", "\"The city\"")
        .containsPattern("\"required\"\\s*:\\s*\\[\\s*\"city\"\\s*]");
  }

  @Test
  void answersAsTheModelHasLearntToReadIt() {
    assertThat(callbacks[0].call("{\"city\": \" Oslo \"}"))
        .isEqualTo("{\"temperature\":-3,\"condition\":\"snowy\"}");
  }

  @Test
  void knowsAWeatherForEveryCity() {
    assertThat(callbacks[0].call("{\"city\": \"Zato\"}"))
        .isEqualTo("{\"temperature\":18,\"condition\":\"cloudy\"}");
  }
}
