package dev.lily.spring.openai;

import java.util.function.UnaryOperator;
import tools.jackson.databind.JsonNode;

/** {@code POST /chat/completions}. Thread-safe. */
final class ChatCompletionOperation implements Operation {
  private final CompletionRequestMapper requests;
  private final AnswerIdentities identities;

  ChatCompletionOperation(AnswerIdentities identities, OpenAiOptions options) {
    this.identities = identities;
    requests = new CompletionRequestMapper(identities.model(), options);
  }

  @Override
  public AskedAnswer read(JsonNode body) {
    CompletionRequest asked = requests.map(body);
    return new AskedAnswer(
        asked.choices(),
        asked.stream(),
        new ChatCompletionFormat(
            identities.next("chatcmpl-", asked.logprobs()),
            asked.choices().size(),
            asked.includeUsage()),
        UnaryOperator.identity());
  }
}
