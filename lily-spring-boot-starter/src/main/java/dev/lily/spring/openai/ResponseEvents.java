package dev.lily.spring.openai;

import java.io.ByteArrayOutputStream;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Collects the typed events of a streamed response, numbered from 0. Not thread-safe.
 *
 * <p>Each event is an object with its type, its number and the fields of its type.
 */
final class ResponseEvents {
  private final ByteArrayOutputStream frames = new ByteArrayOutputStream();
  private int sequenceNumber;

  /**
   * Adds an event.
   *
   * @param fields names and values in turns
   */
  void add(String type, Object... fields) {
    Map<String, Object> event = new LinkedHashMap<>();
    event.put("type", type);
    event.put("sequence_number", sequenceNumber++);
    for (int i = 0; i < fields.length; i += 2) {
      event.put((String) fields[i], fields[i + 1]);
    }
    frames.writeBytes(EventFrames.named(type, event));
  }

  /** The events since the last call. */
  byte[] take() {
    byte[] taken = frames.toByteArray();
    frames.reset();
    return taken;
  }
}
