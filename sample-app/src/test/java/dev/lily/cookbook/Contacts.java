package dev.lily.cookbook;

import com.fasterxml.jackson.annotation.JsonPropertyOrder;
import dev.lily.spring.ai.LilyChatOptions;
import java.util.List;
import org.springframework.ai.chat.client.ChatClient;
import org.springframework.core.ParameterizedTypeReference;
import org.springframework.stereotype.Service;

/** Answers as objects. */
// tag::contacts[]
@Service
class Contacts {

  /** Without an order, properties come by the alphabet. */
  @JsonPropertyOrder({"name", "age", "city"})
  record Person(String name, int age, String city) {}

  private final ChatClient client;

  Contacts(ChatClient.Builder builder) {
    client = builder.build();
  }

  Person read(String text) {
    return client
        .prompt("Extract name, age, city as JSON: " + text)
        .call()
        .entity(Person.class, answer -> answer.useProviderStructuredOutput());
  }

  List<Person> readAll(String text) {
    return client
        .prompt("Extract all persons as a JSON array with name, age, city: " + text)
        .call()
        .entity(
            new ParameterizedTypeReference<List<Person>>() {},
            answer -> answer.useProviderStructuredOutput());
  }

  // end::contacts[]

  // tag::schema[]
  String sentiment(String text) {
    String schema =
        """
        {"type": "object", "required": ["sentiment"], "additionalProperties": false,
         "properties": {"sentiment": {"enum": ["positive", "neutral", "negative"]}}}
        """;
    return client
        .prompt("Classify the sentiment as JSON: " + text)
        .options(LilyChatOptions.builder().outputSchema(schema))
        .call()
        .content();
  }
  // end::schema[]
}
