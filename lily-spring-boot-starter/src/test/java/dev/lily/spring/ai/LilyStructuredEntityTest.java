package dev.lily.spring.ai;

import static org.assertj.core.api.Assertions.assertThat;

import com.networknt.schema.InputFormat;
import com.networknt.schema.Schema;
import com.networknt.schema.SchemaRegistry;
import com.networknt.schema.SpecificationVersion;
import dev.lily.spring.Nano;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.ai.chat.client.ChatClient;
import org.springframework.ai.chat.client.ResponseEntity;
import org.springframework.ai.chat.messages.AssistantMessage;
import org.springframework.ai.chat.messages.Message;
import org.springframework.ai.chat.messages.ToolResponseMessage;
import org.springframework.ai.chat.messages.UserMessage;
import org.springframework.ai.chat.model.ChatResponse;
import org.springframework.ai.chat.prompt.Prompt;
import org.springframework.ai.converter.BeanOutputConverter;
import org.springframework.ai.tool.ToolCallback;
import org.springframework.core.ParameterizedTypeReference;

/** Entities of ChatClient by the provider's structured output, at a temperature that scatters. */
@Timeout(300)
class LilyStructuredEntityTest {

  /** Without texts of any length: lily-nano would not end one that it was not trained to write. */
  record Visit(Meal meal, Table table, List<Guest> guests) {
    record Table(int number, boolean outside) {}

    record Guest(int age, Meal likes) {}

    enum Meal {
      BREAKFAST,
      LUNCH,
      DINNER
    }
  }

  private final LilyChatModel model = LilyChatModel.builder(Nano.engine()).build();
  private final ChatClient client = ChatClient.create(model);

  private static LilyChatOptions.Builder hot(long seed) {
    return LilyChatOptions.builder().temperature(1.5).seed(seed).thinking(false).maxTokens(1000);
  }

  private static void assertValid(String schema, String json) {
    Schema validator =
        SchemaRegistry.withDefaultDialect(SpecificationVersion.DRAFT_2020_12).getSchema(schema);
    assertThat(validator.validate(json, InputFormat.JSON)).as(json).isEmpty();
  }

  private static String text(ChatResponse response) {
    return String.valueOf(response.getResult().getOutput().getText());
  }

  @Test
  void givesNestedRecordsThatFollowTheSchema() {
    String schema = new BeanOutputConverter<>(Visit.class).getJsonSchema();
    Set<Visit> visits = new HashSet<>();
    LongStream.range(0, 12)
        .forEach(
            seed -> {
              ResponseEntity<ChatResponse, Visit> answer =
                  client
                      .prompt("Say something about rabbits.")
                      .options(hot(seed))
                      .call()
                      .responseEntity(Visit.class, output -> output.useProviderStructuredOutput());
              assertValid(schema, text(answer.response()));
              assertThat(answer.response().getResult().getMetadata().getFinishReason())
                  .isEqualTo("stop");
              assertThat(answer.entity().meal()).isNotNull();
              assertThat(answer.entity().table()).isNotNull();
              assertThat(answer.entity().guests()).doesNotContainNull();
              visits.add(answer.entity());
            });
    assertThat(visits).hasSizeGreaterThan(6);
  }

  @Test
  void givesListsWhoseItemsFollowTheSchema() {
    ParameterizedTypeReference<List<Visit.Guest>> type = new ParameterizedTypeReference<>() {};
    String schema = new BeanOutputConverter<>(type).getJsonSchema();
    Set<Integer> lengths = new HashSet<>();
    LongStream.range(0, 12)
        .forEach(
            seed -> {
              ResponseEntity<ChatResponse, List<Visit.Guest>> answer =
                  client
                      .prompt("Say something about rabbits.")
                      .options(hot(seed))
                      .call()
                      .responseEntity(type, output -> output.useProviderStructuredOutput());
              assertValid(schema, text(answer.response()));
              lengths.add(answer.entity().size());
            });
    assertThat(lengths).hasSizeGreaterThan(1);
  }

  record Weather(Sky sky, boolean warm) {
    enum Sky {
      SUNNY,
      RAINY
    }
  }

  private static final ToolCallback WEATHER =
      Tools.tool(
          "get_weather",
          "Get the weather in a given city.",
          """
          {"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}""");

  @Test
  void bindsTheFinalAnswerAndNotTheToolCallsBeforeIt() {
    BeanOutputConverter<Weather> converter = new BeanOutputConverter<>(Weather.class);
    LilyChatOptions options =
        LilyChatOptions.builder()
            .temperature(0.0)
            .thinking(false)
            .maxTokens(300)
            .toolCallbacks(WEATHER)
            .outputSchema(converter.getJsonSchema())
            .build();
    List<Message> messages =
        new ArrayList<>(List.of(new UserMessage("What is the weather in Rome?")));
    AssistantMessage calling = model.call(new Prompt(messages, options)).getResult().getOutput();
    assertThat(calling.getToolCalls())
        .extracting(AssistantMessage.ToolCall::arguments)
        .containsExactly("{\"city\":\"Rome\"}");

    messages.add(calling);
    messages.add(
        ToolResponseMessage.builder()
            .responses(
                List.of(
                    new ToolResponseMessage.ToolResponse(
                        calling.getToolCalls().getFirst().id(),
                        "get_weather",
                        "sunny, 25 degrees")))
            .build());
    // lily-nano never learnt to answer in JSON after a tool; it would rather call again.
    int toolCall = Nano.engine().tokenizer().addedToken("<tool_call>").getAsInt();
    ChatResponse answer =
        model.call(
            new Prompt(messages, options.mutate().logitBias(Map.of(toolCall, -100.0)).build()));
    assertThat(converter.convert(text(answer)).sky()).isNotNull();
  }
}
