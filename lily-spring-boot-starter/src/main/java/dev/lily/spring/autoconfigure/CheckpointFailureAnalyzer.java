package dev.lily.spring.autoconfigure;

import dev.lily.engine.checkpoint.CheckpointException;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** Advises where the model directory is missing, damaged or of a kind that Lily does not run. */
final class CheckpointFailureAnalyzer extends AbstractFailureAnalyzer<CheckpointException> {

  @Override
  protected FailureAnalysis analyze(Throwable rootFailure, CheckpointException cause) {
    return new FailureAnalysis(
        "Lily cannot open its model. " + cause.getMessage(), action(cause.kind()), cause);
  }

  private static String action(CheckpointException.Kind kind) {
    return switch (kind) {
      case NOT_FOUND ->
          "Check lily.model: it must name a readable directory that has config.json,"
              + " tokenizer.json and the safetensors files. A relative path starts at the working"
              + " directory.";
      case CORRUPT ->
          "Download the named file again and compare its size and checksum with the source's.";
      case UNSUPPORTED ->
          "Use a checkpoint of model type qwen3_5_moe, unquantised (bfloat16) or in MLX's affine"
              + " format with group size 64 (4 or 8 bits).";
    };
  }
}
