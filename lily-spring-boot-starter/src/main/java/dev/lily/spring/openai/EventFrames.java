package dev.lily.spring.openai;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** Server-sent events as bytes. */
final class EventFrames {
  private static final byte[] DATA = ascii("data: ");
  private static final byte[] END = ascii("\n\n");
  private static final byte[] DONE = ascii("data: [DONE]\n\n");
  private static final byte[] HEARTBEAT = ascii(": heartbeat\n\n");

  private EventFrames() {}

  /** One event per value; JSON text has no line breaks. */
  static byte[] data(List<?> values) {
    return write(values).toByteArray();
  }

  /** One event with a type of its own. */
  static byte[] named(String type, Object value) {
    ByteArrayOutputStream frame = new ByteArrayOutputStream();
    frame.writeBytes(ascii("event: " + type + "\n"));
    frame.writeBytes(DATA);
    frame.writeBytes(WireJson.bytes(value));
    frame.writeBytes(END);
    return frame.toByteArray();
  }

  /** One event per value, and the one that ends a stream. */
  static byte[] last(List<?> values) {
    ByteArrayOutputStream frames = write(values);
    frames.writeBytes(DONE);
    return frames.toByteArray();
  }

  private static ByteArrayOutputStream write(List<?> values) {
    ByteArrayOutputStream frames = new ByteArrayOutputStream();
    for (Object value : values) {
      frames.writeBytes(DATA);
      frames.writeBytes(WireJson.bytes(value));
      frames.writeBytes(END);
    }
    return frames;
  }

  /** A comment, which clients skip. */
  static byte[] heartbeat() {
    return HEARTBEAT.clone();
  }

  private static byte[] ascii(String text) {
    return text.getBytes(StandardCharsets.US_ASCII);
  }
}
