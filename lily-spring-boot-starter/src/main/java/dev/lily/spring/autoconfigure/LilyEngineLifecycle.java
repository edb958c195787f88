package dev.lily.spring.autoconfigure;

import dev.lily.engine.LilyEngine;
import java.time.Duration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.boot.availability.AvailabilityChangeEvent;
import org.springframework.boot.availability.ReadinessState;
import org.springframework.context.ApplicationContext;
import org.springframework.context.ApplicationListener;
import org.springframework.context.SmartLifecycle;
import org.springframework.context.event.ContextClosedEvent;

/**
 * Drains the engine when the application context closes: new requests are refused at once, running
 * answers may end within the grace, the rest is ended, and then the model is freed. It stops in the
 * last phase, so before the web server's graceful shutdown, which then has no open stream to wait
 * for. A context that is only stopped or paused, to be started again, keeps its engine.
 */
public final class LilyEngineLifecycle
    implements SmartLifecycle, ApplicationListener<ContextClosedEvent> {

  private static final Logger log = LoggerFactory.getLogger(LilyEngineLifecycle.class);

  private final LilyEngine engine;
  private final Duration grace;
  private final ApplicationContext context;
  private volatile boolean running;
  private volatile boolean closing;
  private volatile boolean draining;

  LilyEngineLifecycle(LilyEngine engine, Duration grace, ApplicationContext context) {
    this.engine = engine;
    this.grace = grace;
    this.context = context;
  }

  /** Whether new requests are refused because the application stops. */
  public boolean isDraining() {
    return draining;
  }

  @Override
  public void onApplicationEvent(ContextClosedEvent event) {
    if (event.getApplicationContext().equals(context)) {
      closing = true;
    }
  }

  @Override
  public void start() {
    running = true;
  }

  @Override
  public void stop() {
    stop(() -> {});
  }

  @Override
  public void stop(Runnable callback) {
    running = false;
    if (!closing || draining) {
      callback.run();
      return;
    }
    draining = true;
    AvailabilityChangeEvent.publish(context, ReadinessState.REFUSING_TRAFFIC);
    Thread.ofPlatform().name("lily-shutdown").start(() -> drain(callback));
  }

  private void drain(Runnable callback) {
    try {
      engine.close(grace);
    } catch (RuntimeException e) {
      log.warn("Closing the engine failed", e);
    } finally {
      callback.run();
    }
  }

  @Override
  public boolean isRunning() {
    return running;
  }

  @Override
  public boolean isPauseable() {
    return false;
  }

  @Override
  public int getPhase() {
    return DEFAULT_PHASE;
  }
}
