package dev.lily.spring.actuate;

import dev.lily.engine.EngineStats;
import dev.lily.engine.LilyEngine;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.BaseUnits;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.function.Supplier;
import java.util.function.ToDoubleFunction;

/**
 * Meters from the engine's counters: {@code lily.requests} by {@code outcome}, {@code lily.tokens}
 * by {@code type}, {@code lily.steps}, {@code lily.queue.size}, {@code lily.sessions.active},
 * {@code lily.kv.pages} by {@code state}, and {@code lily.cache.prompts} by {@code result}, {@code
 * lily.cache.evictions}, {@code lily.cache.snapshots} and {@code lily.cache.size} by {@code state},
 * {@code lily.cache.disk.*} for what is on disk, and {@code lily.speculation.tokens} by {@code
 * result}.
 */
public final class LilyMeterBinder implements MeterBinder {

  private final Supplier<EngineStats> stats;

  public LilyMeterBinder(LilyEngine engine) {
    this(engine::stats);
  }

  LilyMeterBinder(Supplier<EngineStats> stats) {
    this.stats = stats;
  }

  @Override
  public void bindTo(MeterRegistry registry) {
    String requests = "Requests by how they ended; rejected ones never entered the queue";
    counter(registry, "lily.requests", "outcome", "completed", requests, EngineStats::completed);
    counter(registry, "lily.requests", "outcome", "cancelled", requests, EngineStats::cancelled);
    counter(registry, "lily.requests", "outcome", "failed", requests, EngineStats::failed);
    counter(registry, "lily.requests", "outcome", "rejected", requests, EngineStats::rejected);
    String tokens = "Tokens read and generated; cached ones are part of the prompt's";
    counter(registry, "lily.tokens", "type", "prompt", tokens, EngineStats::promptTokens);
    counter(registry, "lily.tokens", "type", "cached", tokens, EngineStats::cachedTokens);
    counter(registry, "lily.tokens", "type", "generated", tokens, EngineStats::generatedTokens);
    FunctionCounter.builder("lily.steps", stats, supplier -> supplier.get().steps())
        .description("Passes submitted to the device")
        .register(registry);
    gauge("lily.queue.size", "Requests waiting", EngineStats::queued).register(registry);
    gauge("lily.sessions.active", "Requests being served", EngineStats::running).register(registry);
    bindCache(registry);
    bindDisk(registry);
    String drafts = "Tokens drafted, by whether the model then said them";
    counter(
        registry,
        "lily.speculation.tokens",
        "result",
        "accepted",
        drafts,
        now -> now.speculation().accepted());
    counter(
        registry,
        "lily.speculation.tokens",
        "result",
        "rejected",
        drafts,
        now -> now.speculation().drafted() - now.speculation().accepted());
    String pages = "Pages of the KV cache; those in use by sessions and all";
    gauge("lily.kv.pages", pages, EngineStats::kvPagesUsed).tag("state", "used").register(registry);
    gauge("lily.kv.pages", pages, EngineStats::kvPages).tag("state", "total").register(registry);
  }

  private void bindCache(MeterRegistry registry) {
    String prompts = "Prompts that began with something cached, and prompts that did not";
    counter(registry, "lily.cache.prompts", "result", "hit", prompts, now -> now.cache().hits());
    counter(registry, "lily.cache.prompts", "result", "miss", prompts, now -> now.cache().misses());
    FunctionCounter.builder(
            "lily.cache.evictions", stats, supplier -> supplier.get().cache().evictions())
        .description("Snapshots given up for others or for running sessions")
        .register(registry);
    gauge("lily.cache.snapshots", "Snapshots kept", now -> now.cache().snapshots())
        .register(registry);
    String size = "Memory of the snapshots and their pages, and the most it may be";
    gauge("lily.cache.size", size, now -> now.cache().bytes())
        .tag("state", "used")
        .baseUnit(BaseUnits.BYTES)
        .register(registry);
    gauge("lily.cache.size", size, now -> now.cache().maxBytes())
        .tag("state", "total")
        .baseUnit(BaseUnits.BYTES)
        .register(registry);
  }

  private void bindDisk(MeterRegistry registry) {
    gauge("lily.cache.disk.entries", "Entries on disk", now -> now.disk().entries())
        .register(registry);
    gauge("lily.cache.disk.size", "Size of the entries' files", now -> now.disk().bytes())
        .baseUnit(BaseUnits.BYTES)
        .register(registry);
    String hits = "Prompts that began with something read from disk";
    counter(registry, "lily.cache.disk.hits", hits, now -> now.disk().hits());
    counter(registry, "lily.cache.disk.writes", "Entries written", now -> now.disk().writes());
    String dropped = "Snapshots that left memory before they could be written";
    counter(registry, "lily.cache.disk.dropped", dropped, now -> now.disk().dropped());
    String failures = "Entries that could not be written, and damaged or foreign files";
    counter(registry, "lily.cache.disk.failures", failures, now -> now.disk().failures());
  }

  private void counter(
      MeterRegistry registry,
      String name,
      String description,
      ToDoubleFunction<EngineStats> count) {
    FunctionCounter.builder(name, stats, supplier -> count.applyAsDouble(supplier.get()))
        .description(description)
        .register(registry);
  }

  private void counter(
      MeterRegistry registry,
      String name,
      String tag,
      String value,
      String description,
      ToDoubleFunction<EngineStats> count) {
    FunctionCounter.builder(name, stats, supplier -> count.applyAsDouble(supplier.get()))
        .tag(tag, value)
        .description(description)
        .register(registry);
  }

  private Gauge.Builder<Supplier<EngineStats>> gauge(
      String name, String description, ToDoubleFunction<EngineStats> value) {
    return Gauge.builder(name, stats, supplier -> value.applyAsDouble(supplier.get()))
        .description(description);
  }
}
