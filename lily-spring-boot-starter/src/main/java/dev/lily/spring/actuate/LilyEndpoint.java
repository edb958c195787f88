package dev.lily.spring.actuate;

import dev.lily.engine.EngineStats;
import dev.lily.engine.LilyEngine;
import dev.lily.engine.ModelInfo;
import org.springframework.boot.actuate.endpoint.annotation.Endpoint;
import org.springframework.boot.actuate.endpoint.annotation.ReadOperation;

/** Actuator endpoint {@code lily}: the loaded model, its memory plan and the engine's counters. */
@Endpoint(id = "lily")
public final class LilyEndpoint {

  private final LilyEngine engine;

  public LilyEndpoint(LilyEngine engine) {
    this.engine = engine;
  }

  /** Reads what the engine keeps anyway. */
  @ReadOperation
  public Description describe() {
    return new Description(engine.model(), MemoryDetails.of(engine.memoryPlan()), engine.stats());
  }

  /** What the endpoint answers. */
  public record Description(ModelInfo model, MemoryDetails memory, EngineStats stats) {}
}
