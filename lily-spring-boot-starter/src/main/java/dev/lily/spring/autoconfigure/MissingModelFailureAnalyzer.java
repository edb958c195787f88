package dev.lily.spring.autoconfigure;

import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** Advises where {@code lily.model} is not set. */
final class MissingModelFailureAnalyzer extends AbstractFailureAnalyzer<MissingModelException> {

  @Override
  protected FailureAnalysis analyze(Throwable rootFailure, MissingModelException cause) {
    return new FailureAnalysis(
        "Lily has no model to open: the property lily.model is not set.",
        """
        Set lily.model to the directory of a checkpoint (config.json, tokenizer.json and \
        safetensors files), for example
            lily.model=~/models/Qwen3.6-35B-A3B-4bit
        If this application should not use Lily, set spring.ai.model.chat to another provider \
        or to none, and leave lily.openai.enabled out.\
        """,
        cause);
  }
}
