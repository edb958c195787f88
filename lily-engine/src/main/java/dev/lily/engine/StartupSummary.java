package dev.lily.engine;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** What the log says once a model is open. */
final class StartupSummary {

  private static final long KIB = 1L << 10;
  private static final long MIB = 1L << 20;
  private static final long GIB = 1L << 30;

  private StartupSummary() {}

  /** Model, back end and why, memory: a few lines for the log. */
  static String of(ModelInfo model, MemoryPlan memory) {
    List<String> lines = new ArrayList<>();
    lines.add(
        "Lily is ready: %s (%s, %s parameters, %s)"
            .formatted(
                model.name(),
                model.modelType(),
                count(model.parameters()),
                bytes(model.weightBytes())));
    lines.add(
        "  back end  %s: %s (%s); %s"
            .formatted(
                model.backend(), model.device(), model.deviceDetail(), model.backendReason()));
    lines.add(
        "  context   %d tokens for each of up to %d sessions"
            .formatted(memory.contextLength(), memory.maxSessions()));
    lines.add(
        "  memory    %s of %s: weights %s, KV cache %s (%s, %s a token), states %s, snapshots %s, scratch %s"
            .formatted(
                bytes(memory.totalBytes()),
                bytes(memory.budgetBytes()),
                bytes(memory.weightBytes()),
                bytes(memory.kvCacheBytes()),
                model.kvCache(),
                bytes(memory.kvBytesPerToken()),
                bytes(memory.stateBytes()),
                bytes(memory.snapshotBytes()),
                bytes(memory.scratchBytes())));
    if (model.name().startsWith("lily-nano")) {
      lines.add(
          "  note      %s is a tiny demonstration model: it has a few trained skills and knows nothing else"
              .formatted(model.name()));
    }
    return String.join(System.lineSeparator(), lines);
  }

  private static String count(long number) {
    return number >= 1_000_000_000
        ? String.format(Locale.ROOT, "%.1f billion", number / 1e9)
        : String.format(Locale.ROOT, "%.1f million", number / 1e6);
  }

  /** A number of bytes for people. */
  static String bytes(long bytes) {
    if (bytes < KIB) {
      return bytes + " B";
    }
    if (bytes < MIB) {
      return String.format(Locale.ROOT, "%.1f KiB", bytes / (double) KIB);
    }
    if (bytes < GIB) {
      return String.format(Locale.ROOT, "%.1f MiB", bytes / (double) MIB);
    }
    return String.format(Locale.ROOT, "%.1f GiB", bytes / (double) GIB);
  }
}
