package dev.lily.spring.openai;

import java.util.function.UnaryOperator;

/** {@code POST /chat/completions}. Thread-safe. */
final class ChatCompletionOperation implements Operation {
  private final CompletionRequestMapper requests;
  private final AnswerIdentities identities;

  ChatCompletionOperation(AnswerIdentities identities, OpenAiOptions options) {
    this.identities = identities;
    requests = new CompletionRequestMapper(identities.model(), options);
  }

  @Override
  public AskedAnswer read(FieldReader fields) {
    CompletionRequest asked = requests.map(fields);
    AnswerIdentity identity = identities.next("chatcmpl-", asked.logprobs());
    return new AskedAnswer(
        asked.choices(),
        asked.stream(),
        model ->
            new ChatCompletionFormat(
                identity.by(model), asked.choices().size(), asked.includeUsage()),
        UnaryOperator.identity());
  }
}
