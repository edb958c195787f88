package dev.lily.spring.ai;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.lily.spring.Nano;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.ai.chat.client.ChatClient;
import org.springframework.ai.chat.model.ChatResponse;

/** What becomes of answers that a ChatClient converts to objects. */
@Timeout(300)
class CutAnswerAdvisorTest {

  private static final String TRAVELLER =
      "Extract name, age, city as JSON: Sofia Cook is 73 years old and lives in Jakarta.";

  record Person(String name, int age, String city) {}

  /** Without texts of any length: lily-nano would not end one that it was not trained to write. */
  record Trip(City city, int days) {
    enum City {
      ROME,
      OSLO
    }
  }

  private static ChatClient client(LilyChatOptions.Builder options) {
    return ChatClient.builder(LilyChatModel.builder(Nano.engine()).options(options.build()).build())
        .defaultAdvisors(new CutAnswerAdvisor())
        .build();
  }

  private static LilyChatOptions.Builder greedy(boolean thinking, int maxTokens) {
    return LilyChatOptions.builder().temperature(0.0).thinking(thinking).maxTokens(maxTokens);
  }

  private static void assertCut(
      int tokens, org.assertj.core.api.ThrowableAssert.ThrowingCallable call) {
    assertThatExceptionOfType(CutAnswerException.class)
        .isThrownBy(call)
        .withMessageContaining("after %d tokens (finish reason 'length')", tokens)
        .satisfies(
            e -> {
              assertThat(e.finishReason()).isEqualTo("length");
              assertThat(e.completionTokens()).isEqualTo(tokens);
            });
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void saysThatTheLimitCutTheThoughtOrTheAnswer(boolean thinking) {
    ChatClient client = client(greedy(thinking, 6));
    assertCut(6, () -> client.prompt(TRAVELLER).call().entity(Person.class));
    assertCut(
        6,
        () ->
            client
                .prompt(TRAVELLER)
                .call()
                .entity(Person.class, schema -> schema.useProviderStructuredOutput()));
    assertCut(6, () -> client.prompt(TRAVELLER).call().responseEntity(Person.class));
  }

  @Test
  void saysSoAlsoAfterAToolWasCalled() {
    LilyChatClientTest.CityTools tools = new LilyChatClientTest.CityTools();
    // Enough for the call, which is shorter than the answer from its result.
    LilyChatOptions.Builder options = greedy(false, 30).minTokens(30);
    assertCut(
        30,
        () ->
            client(options)
                .prompt()
                .system("You are a helpful assistant with tools.")
                .user("What is the weather in Rome?")
                .tools(tools)
                .call()
                .entity(Trip.class));
  }

  @Test
  void leavesAnswersAloneThatNobodyConverts() {
    ChatResponse response = client(greedy(false, 6)).prompt(TRAVELLER).call().chatResponse();
    assertThat(response.getResult().getMetadata().getFinishReason()).isEqualTo("length");
    assertThat(client(greedy(false, 6)).prompt(TRAVELLER).stream().content().collectList().block())
        .isNotEmpty();
  }

  @Test
  void passesWholeAnswersOn() {
    assertThat(client(greedy(true, 300)).prompt(TRAVELLER).call().entity(Person.class))
        .isEqualTo(new Person("Sofia Cook", 73, "Jakarta"));
  }

  @Test
  void enforcedAnswersParseEachTime() {
    for (long seed = 0; seed < 20; seed++) {
      ChatClient client =
          client(
              LilyChatOptions.builder().temperature(1.0).seed(seed).thinking(true).maxTokens(800));
      Trip trip =
          client
              .prompt("Say something about rabbits.")
              .tools(seed % 2 == 0 ? List.of() : List.of(new LilyChatClientTest.CityTools()))
              .call()
              .entity(Trip.class, schema -> schema.useProviderStructuredOutput());
      assertThat(trip.city()).as("seed %d", seed).isNotNull();
    }
  }
}
