package dev.lily.sample;

import java.util.Locale;
import org.springframework.ai.tool.annotation.Tool;
import org.springframework.ai.tool.annotation.ToolParam;
import org.springframework.stereotype.Component;

/** A tool that the model can call. Its weather never changes. */
// tag::tool[]
@Component
class WeatherTools {

  record Weather(int temperature, String condition) {}

  @Tool(name = "get_weather", description = "Get the weather for a city")
  Weather weather(@ToolParam(description = "The city") String city) {
    return switch (city.strip().toLowerCase(Locale.ROOT)) {
      case "cairo" -> new Weather(33, "sunny");
      case "london" -> new Weather(12, "rainy");
      case "oslo" -> new Weather(-3, "snowy");
      case "rome" -> new Weather(24, "clear");
      default -> new Weather(18, "cloudy");
    };
  }
}
// end::tool[]
