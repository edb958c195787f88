package dev.lily.spring.openai;

import java.util.List;

/** {@code POST /responses}, of which nothing is stored. Thread-safe. */
final class ResponsesOperation implements Operation {
  private final ResponsesRequestMapper requests;
  private final AnswerIdentities identities;

  ResponsesOperation(AnswerIdentities identities, OpenAiOptions options) {
    this.identities = identities;
    requests = new ResponsesRequestMapper(identities.model(), options);
  }

  @Override
  public AskedAnswer read(FieldReader fields) {
    ResponsesRequest asked = requests.map(fields);
    AnswerIdentity identity = identities.next("resp_", false);
    return new AskedAnswer(
        List.of(asked.request()),
        asked.stream(),
        model -> new ResponsesFormat(identity.by(model), asked),
        asked.input()::inWordsOfTheOperation);
  }
}
