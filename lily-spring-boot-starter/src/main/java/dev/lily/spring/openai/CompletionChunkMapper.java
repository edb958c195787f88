package dev.lily.spring.openai;

import dev.lily.engine.chat.ResponsePart;
import dev.lily.engine.chat.ToolCall;
import dev.lily.engine.generation.GenerationEvent;
import dev.lily.engine.generation.TokenLogprob;
import dev.lily.spring.openai.dto.ChatCompletionChunk;
import dev.lily.spring.openai.dto.ChatCompletionChunk.Delta;
import dev.lily.spring.openai.dto.Logprobs;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Maps the events of one completion to chunks. Each choice begins with its role and ends with an
 * empty delta that has the finish reason. A call that a limit cut off is left out. Not thread-safe.
 */
final class CompletionChunkMapper {
  private final AnswerIdentity identity;
  private final boolean[] begun;
  private final int[] toolCalls;
  private final UsageSum usage = new UsageSum();

  CompletionChunkMapper(AnswerIdentity identity, int choices) {
    this.identity = identity;
    begun = new boolean[choices];
    toolCalls = new int[choices];
  }

  List<ChatCompletionChunk> chunks(ChoiceEvent choiceEvent) {
    int choice = choiceEvent.choice();
    List<ChatCompletionChunk> chunks = new ArrayList<>();
    if (!begun[choice]) {
      begun[choice] = true;
      chunks.add(chunk(choice, Delta.ROLE, null, null));
    }
    switch (choiceEvent.event()) {
      case GenerationEvent.Output output -> addOutput(choice, output, chunks);
      case GenerationEvent.Completed end -> {
        usage.add(end.usage());
        String reason = AnswerMapper.finishReason(end.reason());
        chunks.add(chunk(choice, Delta.EMPTY, null, reason));
      }
      case GenerationEvent.PromptProgress _, GenerationEvent.Failed _ ->
          throw new IllegalArgumentException("Not part of an answer: " + choiceEvent);
    }
    return chunks;
  }

  /** The chunk without choices that ends a stream if asked for. */
  ChatCompletionChunk usageChunk() {
    return chunk(List.of(), usage.total());
  }

  private void addOutput(
      int choice, GenerationEvent.Output output, List<ChatCompletionChunk> chunks) {
    List<Delta> deltas = deltas(choice, output.parts());
    List<TokenLogprob> tokens = output.logprobs();
    if (deltas.isEmpty() && !tokens.isEmpty()) {
      deltas.add(Delta.EMPTY);
    }
    for (int i = 0; i < deltas.size(); i++) {
      Logprobs logprobs =
          i == 0 && !tokens.isEmpty() ? AnswerMapper.logprobs(identity.logprobs(), tokens) : null;
      chunks.add(chunk(choice, deltas.get(i), logprobs, null));
    }
  }

  private List<Delta> deltas(int choice, List<ResponsePart> parts) {
    List<Delta> deltas = new ArrayList<>(parts.size());
    for (ResponsePart part : parts) {
      switch (part) {
        case ResponsePart.ReasoningText thought -> deltas.add(Delta.reasoning(thought.text()));
        case ResponsePart.AnswerText answer -> deltas.add(Delta.content(answer.text()));
        case ResponsePart.CalledTool called -> addCall(toolCalls[choice]++, called.call(), deltas);
        case ResponsePart.IncompleteToolCall _ -> {}
      }
    }
    return deltas;
  }

  private static void addCall(int index, ToolCall call, List<Delta> deltas) {
    deltas.add(
        Delta.toolCall(dev.lily.spring.openai.dto.ToolCall.opening(index, call.id(), call.name())));
    deltas.add(
        Delta.toolCall(
            dev.lily.spring.openai.dto.ToolCall.arguments(index, WireJson.text(call.arguments()))));
  }

  private ChatCompletionChunk chunk(
      int choice, Delta delta, @Nullable Logprobs logprobs, @Nullable String finishReason) {
    return chunk(
        List.of(new ChatCompletionChunk.Choice(choice, delta, logprobs, finishReason)), null);
  }

  private ChatCompletionChunk chunk(
      List<ChatCompletionChunk.Choice> choices, dev.lily.spring.openai.dto.@Nullable Usage usage) {
    return new ChatCompletionChunk(
        identity.id(),
        ChatCompletionChunk.OBJECT,
        identity.created(),
        identity.model(),
        choices,
        usage);
  }
}
