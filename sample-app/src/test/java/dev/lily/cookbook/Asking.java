package dev.lily.cookbook;

import dev.lily.spring.ai.LilyChatOptions;
import java.util.List;
import org.springframework.ai.chat.client.ChatClient;
import org.springframework.ai.chat.model.ChatModel;
import org.springframework.ai.chat.model.ChatResponse;
import org.springframework.ai.chat.prompt.ChatOptions;
import org.springframework.ai.chat.prompt.Prompt;
import org.springframework.ai.tool.annotation.Tool;
import org.springframework.ai.tool.annotation.ToolParam;
import reactor.core.publisher.Flux;

/** The shortest forms of a question. */
final class Asking {

  private final ChatModel chatModel;
  private final ChatClient chatClient;

  Asking(ChatModel chatModel, ChatClient chatClient) {
    this.chatModel = chatModel;
    this.chatClient = chatClient;
  }

  record Weather(int temperature, String condition) {}

  static class WeatherTools {
    @Tool(name = "get_weather", description = "Get the weather for a city")
    Weather weather(@ToolParam(description = "The city") String city) {
      return new Weather(24, "clear");
    }
  }

  void everything() {
    // tag::asking[]
    String text = chatModel.call("What is the capital of France?");

    Flux<ChatResponse> stream =
        chatModel.stream(
            new Prompt(
                "Tell me a story.",
                LilyChatOptions.builder().temperature(0.7).maxTokens(400).thinking(false).build()));

    Weather weather =
        chatClient
            .prompt("What is the weather in Rome?")
            .tools(new WeatherTools())
            .call()
            .entity(Weather.class);
    // end::asking[]
    assert text != null && stream != null && weather != null;
  }

  /** What takes the place of another provider's options. */
  List<ChatOptions> migrated() {
    // tag::migrated[]
    ChatOptions portable = ChatOptions.builder().temperature(0.3).maxTokens(200).build();

    ChatOptions own =
        LilyChatOptions.builder()
            .temperature(0.3) // the same name in all three
            .maxTokens(200) // numPredict, maxCompletionTokens
            .stopSequences(List.of("END")) // stop
            .repetitionPenalty(1.1) // repeatPenalty
            .thinking(false) // think, reasoningEffort
            .outputSchema("{\"type\": \"object\"}") // format, responseFormat
            .build();
    // end::migrated[]
    return List.of(portable, own);
  }

  Flux<String> streamWithTools(String question) {
    // tag::stream-tools[]
    Flux<String> answer = chatClient.prompt(question).tools(new WeatherTools()).stream().content();
    // end::stream-tools[]
    return answer;
  }
}
