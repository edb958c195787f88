package dev.lily.engine.generation;

import dev.lily.engine.backend.PendingPass;
import dev.lily.engine.chat.ResponsePart;
import dev.lily.engine.tokenizer.Tokenizer;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Reads the tokens of one answer: counts them, makes output of them, and says when it ends. */
final class AnswerReader {
  private final Tokenizer tokenizer;
  private final AnswerPipeline pipeline;
  private final @Nullable AnswerGuide guide;
  private final int minTokens;
  private final int maxTokens;
  private final boolean reportsLogprobs;
  private final List<TokenLogprob> logprobs = new ArrayList<>();
  private int generated;
  private int reasoning;

  /**
   * @param guide of a constrained answer
   * @param reportsLogprobs whether each token's log-probability is put out with it
   */
  AnswerReader(
      Tokenizer tokenizer,
      AnswerPipeline pipeline,
      @Nullable AnswerGuide guide,
      int minTokens,
      int maxTokens,
      boolean reportsLogprobs) {
    this.tokenizer = tokenizer;
    this.pipeline = pipeline;
    this.guide = guide;
    this.minTokens = minTokens;
    this.maxTokens = maxTokens;
    this.reportsLogprobs = reportsLogprobs;
  }

  /** Tokens read, an end token included. */
  int generated() {
    return generated;
  }

  /** Those of them that were reasoning. */
  int reasoning() {
    return reasoning;
  }

  /** A sample of a pass, checked. */
  int token(PendingPass pass, int index) {
    int token = pass.token(index);
    if (token < 0 || token >= tokenizer.vocabularySize()) {
      throw new IllegalStateException(
          "The back end chose token %d; this model's ids are from 0 to %d"
              .formatted(token, tokenizer.vocabularySize() - 1));
    }
    return token;
  }

  /**
   * Takes the next token of the answer.
   *
   * @param index of the sample that it is
   * @return why the answer ends with it, or {@code null} if it goes on
   */
  @Nullable FinishReason read(int token, PendingPass pass, int index, StopTokens stopTokens) {
    generated++;
    if (pipeline.isReasoning()) {
      reasoning++;
    }
    if (reportsLogprobs) {
      logprobs.add(logprob(pass, index, token));
    }
    return advance(token, stopTokens);
  }

  private @Nullable FinishReason advance(int token, StopTokens stopTokens) {
    if (stopTokens.contains(token)) {
      pipeline.finish(false);
      return endOfTurn();
    }
    if (guide != null) {
      guide.accept(token, pipeline);
    }
    pipeline.accept(token, generated > minTokens);
    if (pipeline.stopped()) {
      return endOfTurn();
    }
    if (guide != null && guide.isFinished()) {
      pipeline.finish(false);
      return endOfTurn();
    }
    if (generated < maxTokens) {
      return null;
    }
    pipeline.finish(true);
    return pipeline.stopped() ? endOfTurn() : FinishReason.LENGTH;
  }

  private FinishReason endOfTurn() {
    return pipeline.toolCalls() > 0 ? FinishReason.TOOL_CALLS : FinishReason.STOP;
  }

  private TokenLogprob logprob(PendingPass pass, int index, int token) {
    int alternatives = pass.numTopLogprobs(index);
    List<TokenLogprob> top = new ArrayList<>(alternatives);
    for (int rank = 0; rank < alternatives; rank++) {
      int id = pass.topToken(index, rank);
      top.add(new TokenLogprob(id, tokenizer.bytes(id), pass.topLogprob(index, rank), List.of()));
    }
    return new TokenLogprob(token, tokenizer.bytes(token), pass.logprob(index), List.copyOf(top));
  }

  /** What the tokens read since the last call give, or {@code null} if nothing yet. */
  GenerationEvent.@Nullable Output takeOutput() {
    List<ResponsePart> parts = pipeline.takeParts();
    if (parts.isEmpty() && logprobs.isEmpty()) {
      return null;
    }
    List<TokenLogprob> reported = List.copyOf(logprobs);
    logprobs.clear();
    return new GenerationEvent.Output(parts, reported);
  }
}
