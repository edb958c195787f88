package dev.lily.spring.openai;

import dev.lily.engine.generation.FinishReason;
import dev.lily.engine.generation.GenerationEvent;
import dev.lily.spring.openai.dto.Response;
import dev.lily.spring.openai.dto.ResponseUsage;
import org.jspecify.annotations.Nullable;

/** A response, whole or as typed events. Not thread-safe. */
final class ResponsesFormat implements AnswerFormat {
  private static final String IN_PROGRESS = "in_progress";
  private static final String COMPLETED = "completed";
  private static final String INCOMPLETE = "incomplete";
  private static final String FAILED = "failed";

  private final AnswerIdentity identity;
  private final ResponsesRequest asked;
  private final ResponseEvents events = new ResponseEvents();
  private final ResponseOutput output;
  private String status = IN_PROGRESS;
  private @Nullable ResponseUsage usage;

  ResponsesFormat(AnswerIdentity identity, ResponsesRequest asked) {
    this.identity = identity;
    this.asked = asked;
    output = new ResponseOutput(events, asked.repeated().summary() != null);
  }

  @Override
  public String id() {
    return identity.id();
  }

  @Override
  public void accept(ChoiceEvent event) {
    take(event);
    events.take();
  }

  @Override
  public Object body() {
    return response(null);
  }

  @Override
  public byte[] opening() {
    Response begun = response(null);
    events.add("response.created", "response", begun);
    events.add("response.in_progress", "response", begun);
    return events.take();
  }

  @Override
  public byte[] frames(ChoiceEvent event) {
    take(event);
    return events.take();
  }

  @Override
  public byte[] closing() {
    events.add("response." + status, "response", response(null));
    return events.take();
  }

  @Override
  public byte[] failure(ApiError error) {
    status = FAILED;
    events.add(
        "response.failed",
        "response",
        response(new Response.Failure("server_error", error.message())));
    return events.take();
  }

  private void take(ChoiceEvent choiceEvent) {
    switch (choiceEvent.event()) {
      case GenerationEvent.Output part -> part.parts().forEach(output::accept);
      case GenerationEvent.Completed end -> {
        // Throws if the engine cancelled it, so that it does not pass for an answer.
        var _ = AnswerMapper.finishReason(end.reason());
        boolean truncated = end.reason() == FinishReason.LENGTH;
        output.finish(truncated);
        status = truncated ? INCOMPLETE : COMPLETED;
        UsageSum sum = new UsageSum();
        sum.add(end.usage());
        usage = ResponseUsage.of(sum.total());
      }
      case GenerationEvent.PromptProgress _, GenerationEvent.Failed _ ->
          throw new IllegalArgumentException("Not part of an answer: " + choiceEvent);
    }
  }

  private Response response(Response.@Nullable Failure failure) {
    ResponsesRequest.Repeated repeated = asked.repeated();
    return new Response(
        identity.id(),
        Response.OBJECT,
        identity.created(),
        status,
        false,
        failure,
        status.equals(INCOMPLETE) ? new Response.IncompleteDetails("max_output_tokens") : null,
        repeated.instructions(),
        repeated.maxOutputTokens(),
        identity.model(),
        output.items(),
        asked.request().parallelToolCalls(),
        null,
        new Response.Reasoning(repeated.effort(), repeated.summary()),
        false,
        repeated.temperature(),
        new Response.Text(repeated.format()),
        repeated.toolChoice(),
        repeated.tools(),
        repeated.topP(),
        "disabled",
        usage,
        repeated.metadata());
  }
}
