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
        "  memory    %s of %s".formatted(bytes(memory.totalBytes()), bytes(memory.budgetBytes())));
    lines.add(part("weights", memory.weightBytes(), ""));
    lines.add(
        part(
            "KV cache",
            memory.kvCacheBytes(),
            "%s, %s a token".formatted(model.kvCache(), bytes(memory.kvBytesPerToken()))));
    lines.add(part("states", memory.stateBytes(), ""));
    lines.add(
        part("snapshots", memory.snapshotBytes(), bytes(memory.cacheBytes()) + " with their KV"));
    lines.add(part("scratch", memory.scratchBytes(), ""));
    lines.add("  fits      " + fits(memory));
    if (model.name().startsWith("lily-nano")) {
      lines.add(
          "  note      %s is a tiny demonstration model: it has a few trained skills and knows nothing else"
              .formatted(model.name()));
    }
    return String.join(System.lineSeparator(), lines);
  }

  private static String part(String name, long bytes, String note) {
    return "    %-10s %10s  %s".formatted(name, bytes(bytes), note).stripTrailing();
  }

  /** How many tokens each of so many sessions can have at the same time. */
  private static String fits(MemoryPlan memory) {
    long tokens = memory.kvCacheBytes() / memory.kvBytesPerToken();
    List<String> fits = new ArrayList<>();
    for (int sessions = 1; sessions < memory.maxSessions(); sessions *= 2) {
      fits.add(fits(memory, tokens, sessions));
    }
    fits.add(fits(memory, tokens, memory.maxSessions()));
    return "sessions × tokens at the same time: " + String.join(", ", fits);
  }

  private static String fits(MemoryPlan memory, long tokens, int sessions) {
    return String.format(
        Locale.ROOT, "%d × %d", sessions, Math.min(memory.contextLength(), tokens / sessions));
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
