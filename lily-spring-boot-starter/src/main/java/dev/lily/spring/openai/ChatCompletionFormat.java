package dev.lily.spring.openai;

import java.util.List;

/** A chat completion, whole or in chunks. Not thread-safe. */
final class ChatCompletionFormat implements AnswerFormat {
  private final AnswerIdentity identity;
  private final boolean includeUsage;
  private final CompletionAssembler assembler;
  private final CompletionChunkMapper chunks;

  /**
   * @param choices how many there are
   * @param includeUsage whether a stream ends with the usage
   */
  ChatCompletionFormat(AnswerIdentity identity, int choices, boolean includeUsage) {
    this.identity = identity;
    this.includeUsage = includeUsage;
    assembler = new CompletionAssembler(identity, choices);
    chunks = new CompletionChunkMapper(identity, choices);
  }

  @Override
  public String id() {
    return identity.id();
  }

  @Override
  public void accept(ChoiceEvent event) {
    assembler.accept(event);
  }

  @Override
  public Object body() {
    return assembler.completion();
  }

  @Override
  public byte[] opening() {
    return NOTHING;
  }

  @Override
  public byte[] frames(ChoiceEvent event) {
    return EventFrames.data(chunks.chunks(event));
  }

  @Override
  public byte[] closing() {
    return EventFrames.last(includeUsage ? List.of(chunks.usageChunk()) : List.of());
  }

  @Override
  public byte[] failure(ApiError error) {
    return EventFrames.data(List.of(error.body()));
  }
}
