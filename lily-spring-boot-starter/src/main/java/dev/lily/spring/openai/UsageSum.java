package dev.lily.spring.openai;

import dev.lily.spring.openai.dto.Usage;
import java.util.List;

/**
 * The usage of a completion from that of its choices: the prompt counts once, what was generated
 * counts for each. Not thread-safe.
 */
final class UsageSum {
  private int prompt;
  private int cached;
  private int completion;
  private int reasoning;

  void add(dev.lily.engine.generation.Usage choice) {
    prompt = choice.promptTokens();
    cached = Math.max(cached, choice.cachedTokens());
    completion += choice.completionTokens();
    reasoning += choice.reasoningTokens();
  }

  Usage total() {
    return Usage.of(prompt, cached, completion, reasoning);
  }

  /** The usage of a request with several prompts. */
  static Usage total(List<UsageSum> prompts) {
    UsageSum sum = new UsageSum();
    for (UsageSum one : prompts) {
      sum.prompt += one.prompt;
      sum.cached += one.cached;
      sum.completion += one.completion;
      sum.reasoning += one.reasoning;
    }
    return sum.total();
  }
}
