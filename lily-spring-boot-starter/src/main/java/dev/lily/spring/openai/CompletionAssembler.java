package dev.lily.spring.openai;

import dev.lily.engine.chat.ToolCall;
import dev.lily.engine.generation.GenerationResult;
import dev.lily.engine.generation.ResultCollector;
import dev.lily.spring.openai.dto.ChatCompletion;
import java.util.ArrayList;
import java.util.List;

/** Puts the events of a completion together to one answer. Not thread-safe. */
final class CompletionAssembler {
  private final AnswerIdentity identity;
  private final List<ResultCollector> choices = new ArrayList<>();

  CompletionAssembler(AnswerIdentity identity, int choices) {
    this.identity = identity;
    for (int i = 0; i < choices; i++) {
      this.choices.add(new ResultCollector());
    }
  }

  void accept(ChoiceEvent event) {
    choices.get(event.choice()).onEvent(event.event());
  }

  /** The answer, once all choices have ended. */
  ChatCompletion completion() {
    UsageSum usage = new UsageSum();
    List<ChatCompletion.Choice> mapped = new ArrayList<>(choices.size());
    for (int i = 0; i < choices.size(); i++) {
      GenerationResult result = choices.get(i).result();
      usage.add(result.usage());
      mapped.add(choice(i, result));
    }
    return new ChatCompletion(
        identity.id(),
        ChatCompletion.OBJECT,
        identity.created(),
        identity.model(),
        mapped,
        usage.total());
  }

  private ChatCompletion.Choice choice(int index, GenerationResult result) {
    boolean calls = !result.toolCalls().isEmpty();
    return new ChatCompletion.Choice(
        index,
        new ChatCompletion.Message(
            "assistant",
            calls && result.text().isEmpty() ? null : result.text(),
            null,
            result.reasoning().isEmpty() ? null : result.reasoning(),
            calls ? result.toolCalls().stream().map(CompletionAssembler::call).toList() : null),
        AnswerMapper.logprobs(identity.logprobs(), result.logprobs()),
        AnswerMapper.finishReason(result.finishReason()));
  }

  private static dev.lily.spring.openai.dto.ToolCall call(ToolCall call) {
    return dev.lily.spring.openai.dto.ToolCall.whole(
        call.id(), call.name(), WireJson.text(call.arguments()));
  }
}
