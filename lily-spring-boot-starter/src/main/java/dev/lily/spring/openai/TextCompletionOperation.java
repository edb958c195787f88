package dev.lily.spring.openai;

import dev.lily.engine.generation.ContextOverflowException;
import dev.lily.engine.generation.InvalidRequestException;

/** {@code POST /completions}: continues texts without the chat template. Thread-safe. */
final class TextCompletionOperation implements Operation {
  private final TextCompletionRequestMapper requests;
  private final AnswerIdentities identities;

  TextCompletionOperation(AnswerIdentities identities, ServedModel model, OpenAiOptions options) {
    this.identities = identities;
    requests = new TextCompletionRequestMapper(model, options);
  }

  @Override
  public AskedAnswer read(FieldReader fields) {
    TextCompletionRequest asked = requests.map(fields);
    AnswerIdentity identity = identities.next("cmpl-", asked.topLogprobs() >= 0);
    return new AskedAnswer(
        asked.choices(),
        asked.stream(),
        model -> new TextCompletionFormat(identity.by(model), asked),
        TextCompletionOperation::inWordsOfTheOperation);
  }

  private static Throwable inWordsOfTheOperation(Throwable failure) {
    return switch (failure) {
      case ContextOverflowException e ->
          ErrorMapper.contextOverflow(e, TextCompletionRequestMapper.PROMPT).exception();
      case InvalidRequestException e when e.parameter().equals("rawPrompt") ->
          ApiError.invalidValue(TextCompletionRequestMapper.PROMPT, String.valueOf(e.getMessage()))
              .exception();
      default -> failure;
    };
  }
}
