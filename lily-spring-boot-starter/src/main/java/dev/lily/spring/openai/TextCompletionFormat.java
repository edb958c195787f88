package dev.lily.spring.openai;

import dev.lily.engine.chat.ResponsePart;
import dev.lily.engine.generation.GenerationEvent;
import dev.lily.engine.generation.TokenLogprob;
import dev.lily.spring.openai.dto.TextCompletion;
import dev.lily.spring.openai.dto.TextCompletion.TextLogprobs;
import dev.lily.spring.openai.dto.Usage;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** A text completion, whole or in pieces. Not thread-safe. */
final class TextCompletionFormat implements AnswerFormat {
  private final AnswerIdentity identity;
  private final TextCompletionRequest asked;
  private final List<Choice> choices = new ArrayList<>();
  private final UsageSum[] usages;

  TextCompletionFormat(AnswerIdentity identity, TextCompletionRequest asked) {
    this.identity = identity;
    this.asked = asked;
    usages = new UsageSum[asked.echoes().size()];
    for (int prompt = 0; prompt < usages.length; prompt++) {
      usages[prompt] = new UsageSum();
      for (int i = 0; i < asked.choicesPerPrompt(); i++) {
        choices.add(new Choice(choices.size(), asked.echoes().get(prompt)));
      }
    }
  }

  @Override
  public String id() {
    return identity.id();
  }

  @Override
  public void accept(ChoiceEvent event) {
    Choice choice = choices.get(event.choice());
    switch (event.event()) {
      case GenerationEvent.Output output -> {
        choice.text.append(text(output));
        choice.tokens.addAll(output.logprobs());
      }
      case GenerationEvent.Completed end -> {
        choice.finishReason = AnswerMapper.finishReason(end.reason());
        count(event.choice(), end);
      }
      case GenerationEvent.PromptProgress _, GenerationEvent.Failed _ -> throw notPart(event);
    }
  }

  @Override
  public Object body() {
    return piece(
        choices.stream()
            .map(
                choice ->
                    new TextCompletion.Choice(
                        choice.index,
                        choice.text.toString(),
                        choice.logprobs(choice.tokens),
                        choice.finishReason))
            .toList(),
        usage());
  }

  @Override
  public byte[] opening() {
    return EventFrames.data(
        choices.stream()
            .filter(choice -> !choice.text.isEmpty())
            .map(choice -> piece(choice.index, choice.text.toString(), null, null))
            .toList());
  }

  @Override
  public byte[] frames(ChoiceEvent event) {
    Choice choice = choices.get(event.choice());
    return switch (event.event()) {
      case GenerationEvent.Output output -> {
        String text = text(output);
        List<TokenLogprob> tokens = output.logprobs();
        yield text.isEmpty() && tokens.isEmpty()
            ? NOTHING
            : EventFrames.data(
                List.of(
                    piece(
                        choice.index,
                        text,
                        tokens.isEmpty() ? null : choice.logprobs(tokens),
                        null)));
      }
      case GenerationEvent.Completed end -> {
        count(event.choice(), end);
        String reason = AnswerMapper.finishReason(end.reason());
        yield EventFrames.data(List.of(piece(choice.index, "", null, reason)));
      }
      case GenerationEvent.PromptProgress _, GenerationEvent.Failed _ -> throw notPart(event);
    };
  }

  @Override
  public byte[] closing() {
    return EventFrames.last(asked.includeUsage() ? List.of(piece(List.of(), usage())) : List.of());
  }

  @Override
  public byte[] failure(ApiError error) {
    return EventFrames.data(List.of(error.body()));
  }

  private void count(int choice, GenerationEvent.Completed end) {
    usages[choice / asked.choicesPerPrompt()].add(end.usage());
  }

  private Usage usage() {
    return UsageSum.total(List.of(usages));
  }

  private static String text(GenerationEvent.Output output) {
    StringBuilder text = new StringBuilder();
    for (ResponsePart part : output.parts()) {
      // Without a conversation all that the model writes is answer text.
      if (part instanceof ResponsePart.AnswerText answer) {
        text.append(answer.text());
      }
    }
    return text.toString();
  }

  private TextCompletion piece(
      int choice, String text, @Nullable TextLogprobs logprobs, @Nullable String finishReason) {
    return piece(List.of(new TextCompletion.Choice(choice, text, logprobs, finishReason)), null);
  }

  private TextCompletion piece(List<TextCompletion.Choice> pieces, @Nullable Usage usage) {
    return new TextCompletion(
        identity.id(), TextCompletion.OBJECT, identity.created(), identity.model(), pieces, usage);
  }

  private static IllegalArgumentException notPart(ChoiceEvent event) {
    return new IllegalArgumentException("Not part of an answer: " + event);
  }

  /** What is known of a choice so far; of a streamed one, the echo and the offsets. */
  private final class Choice {
    final int index;
    final StringBuilder text;
    final List<TokenLogprob> tokens = new ArrayList<>();
    @Nullable String finishReason;
    private final TextLogprobsMapper logprobs;

    Choice(int index, String echo) {
      this.index = index;
      text = new StringBuilder(echo);
      logprobs = new TextLogprobsMapper(asked.topLogprobs() > 0, 0);
    }

    @Nullable TextLogprobs logprobs(List<TokenLogprob> next) {
      return asked.topLogprobs() < 0 ? null : logprobs.map(next);
    }
  }
}
