package dev.lily.spring;

import dev.lily.engine.EngineOptions;
import dev.lily.engine.LilyEngine;
import dev.lily.engine.backend.KeyValueType;
import java.nio.file.Path;

/** The test model, lily-nano, and an engine on it that all tests of this JVM share. */
public final class Nano {

  /** Directory of the checkpoint, from the build's system property. */
  public static final Path DIRECTORY = Path.of(System.getProperty("lily.nano.dir"));

  public static final String NAME = "lily-nano-4bit";

  private Nano() {}

  /** To measure another one by hand. */
  private static final KeyValueType KV_CACHE =
      KeyValueType.of(System.getProperty("lily.nano.kv-cache", KeyValueType.BF16.word()));

  private static final class Shared {
    private static final LilyEngine ENGINE =
        LilyEngine.open(
            EngineOptions.builder(DIRECTORY)
                .maxSessions(8)
                .queueLimit(256)
                .kvCache(KV_CACHE)
                .build());
  }

  /** Open until the JVM ends. */
  public static LilyEngine engine() {
    return Shared.ENGINE;
  }
}
