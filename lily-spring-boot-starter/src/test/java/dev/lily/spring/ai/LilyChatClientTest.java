package dev.lily.spring.ai;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.spring.Nano;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.ai.chat.client.ChatClient;
import org.springframework.ai.chat.model.ChatResponse;
import org.springframework.ai.tool.annotation.Tool;
import org.springframework.ai.tool.annotation.ToolParam;
import reactor.core.publisher.Flux;
import reactor.core.scheduler.Schedulers;

/** The chat model behind Spring AI's ChatClient: tool loop, streams and converters. */
@Timeout(300)
class LilyChatClientTest {

  /** Tools as an application writes them. */
  static final class CityTools {
    final List<String> asked = new CopyOnWriteArrayList<>();
    final List<String> threadsThatMustNotBlock = new CopyOnWriteArrayList<>();

    @Tool(name = "get_weather", description = "Get the weather in a given city.")
    String weather(@ToolParam(description = "The city") String city) {
      asked.add(city);
      if (Schedulers.isInNonBlockingThread()) {
        threadsThatMustNotBlock.add(Thread.currentThread().getName());
      }
      return city.equals("Rome") ? "sunny, 25 degrees" : "clear, 33 degrees";
    }
  }

  static final class DeployTool {
    int runs;

    @Tool(name = "deploy_bucket", description = "Deploy the bucket")
    String deploy() {
      runs++;
      return "{\"error\": \"timeout\"}";
    }
  }

  private final LilyChatModel model =
      LilyChatModel.builder(Nano.engine())
          .options(LilyChatOptions.builder().temperature(0.0).thinking(true).maxTokens(300).build())
          .build();

  private final ChatClient client = ChatClient.create(model);

  private ChatClient.ChatClientRequestSpec weather(CityTools tools) {
    return client
        .prompt()
        .system("You are a helpful assistant with tools.")
        .user("What is the weather in Rome and Cairo?")
        .tools(tools);
  }

  private static final String WEATHER_ANSWER =
      "It is sunny and 25 degrees in Rome. It is clear and 33 degrees in Cairo.";

  @Test
  void runsToolsInACall() {
    CityTools tools = new CityTools();
    ChatResponse response = weather(tools).call().chatResponse();
    assertThat(response.getResult().getOutput().getText()).isEqualTo(WEATHER_ANSWER);
    assertThat(response.getResult().getMetadata().getFinishReason()).isEqualTo("stop");
    assertThat(tools.asked).containsExactly("Rome", "Cairo");
  }

  @Test
  void runsToolsInAStream() {
    CityTools tools = new CityTools();
    List<String> pieces = weather(tools).stream().content().collectList().block();
    assertThat(String.join("", pieces)).isEqualTo(WEATHER_ANSWER);
    assertThat(pieces).hasSizeGreaterThan(5);
    assertThat(tools.asked).containsExactly("Rome", "Cairo");
  }

  @Test
  void runsToolsOfAStreamWhereTheyMayBlock() {
    CityTools tools = new CityTools();
    String answer =
        Flux.defer(() -> weather(tools).stream().content())
            .subscribeOn(Schedulers.parallel())
            .collect(Collectors.joining())
            .block();
    assertThat(answer).isEqualTo(WEATHER_ANSWER);
    assertThat(tools.asked).containsExactly("Rome", "Cairo");
    assertThat(tools.threadsThatMustNotBlock).isEmpty();
  }

  @Test
  void showsASubscriberTheFinishReasonOfTheLastRoundOnly() {
    List<ChatResponse> chunks =
        weather(new CityTools()).stream().chatResponse().collectList().block();
    assertThat(chunks)
        .filteredOn(chunk -> chunk.getResult().getMetadata().getFinishReason() != null)
        .singleElement()
        .satisfies(
            last -> assertThat(last.getResult().getMetadata().getFinishReason()).isEqualTo("stop"));
  }

  @Test
  void runsAToolWithoutParameters() {
    DeployTool tool = new DeployTool();
    String answer =
        client
            .prompt()
            .system("You are Lily nano.")
            .user("Deploy the bucket.")
            .tools(tool)
            .call()
            .content();
    assertThat(tool.runs).isEqualTo(1);
    assertThat(answer).isEqualTo("The tool reported an error: timeout.");
  }

  record Person(String name, int age, String city) {}

  @Test
  void givesConvertersTheAnswerWithoutTheThought() {
    Person person =
        client
            .prompt()
            .user(
                "Extract name, age, city as JSON: Sofia Cook is 73 years old and lives in Jakarta.")
            .call()
            .entity(Person.class);
    assertThat(person).isEqualTo(new Person("Sofia Cook", 73, "Jakarta"));
  }

  /** Without texts of any length: lily-nano would not end one that it was not trained to write. */
  record Visit(Meal meal, Guests guests) {
    record Guests(int adults, boolean children) {}

    enum Meal {
      LUNCH,
      DINNER
    }
  }

  @Test
  void givesARecordWhoseSchemaTheAnswerFollows() {
    Visit visit =
        client
            .prompt()
            .user("Say something about rabbits.")
            .call()
            .entity(Visit.class, schema -> schema.useProviderStructuredOutput());
    assertThat(visit.meal()).isNotNull();
    assertThat(visit.guests()).isNotNull();
  }

  @Test
  void remembersEarlierTurns() {
    ChatResponse response =
        client
            .prompt()
            .messages(
                new org.springframework.ai.chat.messages.UserMessage("My name is Clara."),
                new org.springframework.ai.chat.messages.AssistantMessage(
                    "Nice to meet you, Clara!"))
            .user("What is my name?")
            .call()
            .chatResponse();
    assertThat(response.getResult().getOutput().getText()).contains("Clara");
  }
}
