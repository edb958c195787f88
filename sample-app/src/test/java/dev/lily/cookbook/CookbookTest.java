package dev.lily.cookbook;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.cookbook.Contacts.Person;
import dev.lily.sample.SampleApplication;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.springframework.ai.chat.client.ChatClient;
import org.springframework.ai.chat.model.ChatModel;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;

/** The recipes of {@code docs/cookbook.md} do what it says. */
@SpringBootTest(
    webEnvironment = WebEnvironment.NONE,
    classes = {
      SampleApplication.class,
      Contacts.class,
      Library.class,
      Secretary.class,
      ThinkingAloud.class,
      WordCounts.class
    })
class CookbookTest {

  @Autowired private Contacts contacts;
  @Autowired private ChatClient librarian;
  @Autowired private Secretary secretary;
  @Autowired private ThinkingAloud thinkingAloud;
  @Autowired private ChatModel chatModel;
  @Autowired private ChatClient.Builder chatClient;

  // tag::test[]
  @Test
  void readsAPerson() {
    assertThat(contacts.read("Anna is 31 years old and lives in Oslo."))
        .isEqualTo(new Person("Anna", 31, "Oslo"));
  }

  // end::test[]

  @Test
  void readsSeveralPersons() {
    assertThat(
            contacts.readAll(
                "Anna is 31 years old and lives in Oslo. Ben is 9 years old and lives in Rome."))
        .containsExactly(new Person("Anna", 31, "Oslo"), new Person("Ben", 9, "Rome"));
  }

  @Test
  void followsAnOwnSchema() {
    assertThat(contacts.sentiment("The phone is awful."))
        .isEqualToIgnoringWhitespace("{\"sentiment\":\"negative\"}");
  }

  @Test
  void answersFromDocuments() {
    assertThat(librarian.prompt("Where does Maria live?").call().content())
        .isEqualTo("Maria lives in Naples.");
    assertThat(librarian.prompt("What does Olaf like?").call().content())
        .isEqualTo("Olaf likes cooking.");
  }

  @Test
  void remembersEachConversation() {
    secretary.answer("one", "My name is Clara.");
    secretary.answer("two", "My name is Laura.");
    assertThat(secretary.answer("one", "What is my name?")).isEqualTo("Your name is Clara.");
    assertThat(secretary.answer("two", "What is my name?")).isEqualTo("Your name is Laura.");
  }

  @Test
  void streamsReasoningApartFromTheAnswer() {
    List<ThinkingAloud.Piece> pieces =
        thinkingAloud.stream("What is 47 + 38?").collectList().block();
    assertThat(pieces.getFirst().text()).isEmpty();
    assertThat(pieces.getFirst().reasoning()).isNotEmpty();
    assertThat(pieces.getLast().reasoning()).contains("Ones: 7 + 8 = 15");
    assertThat(pieces.stream().map(ThinkingAloud.Piece::text).reduce("", String::concat))
        .isEqualTo("47 + 38 = 85");
  }

  @Test
  void streamsTheAnswerBehindToolCalls() {
    Asking asking = new Asking(chatModel, chatClient.build());
    assertThat(
            asking.streamWithTools("What is the weather in Rome?").collectList().block().stream()
                .reduce("", String::concat))
        .isEqualTo("It is clear and 24 degrees in Rome.");
  }

  @Test
  void acceptsTheOptionsThatTakeTheOthersPlace() {
    Asking asking = new Asking(chatModel, chatClient.build());
    assertThat(asking.migrated())
        .allSatisfy(
            options ->
                assertThat(
                        chatClient
                            .build()
                            .prompt("Extract name as JSON: Anna lives in Oslo.")
                            .options(options.mutate())
                            .call()
                            .content())
                    .contains("Anna"));
  }
}
