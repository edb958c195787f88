package dev.lily.spring.openai;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.regex.Pattern;

/** A connection on which a test says exactly what it wants. */
final class RawConnection implements AutoCloseable {
  private final Socket socket;
  private final ByteArrayOutputStream received = new ByteArrayOutputStream();

  RawConnection(Socket socket) throws IOException {
    this.socket = socket;
    socket.setSoTimeout(60_000);
  }

  void send(String text) throws IOException {
    socket.getOutputStream().write(text.getBytes(StandardCharsets.UTF_8));
    socket.getOutputStream().flush();
  }

  /** Posts a chat completion; single quotes may stand for double ones. */
  void post(String body) throws IOException {
    send(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
            + body.length()
            + "\r\n\r\n"
            + body.replace('\'', '"'));
  }

  /** Reads until the text received has this in it. */
  String readUntil(String text) throws IOException {
    return readUntil(text, 1);
  }

  /** How often the text received has this in it. */
  int count(String text) {
    return received().split(Pattern.quote(text), -1).length - 1;
  }

  /** Reads until the text received has this in it so many times. */
  String readUntil(String text, int times) throws IOException {
    while (count(text) < times) {
      int next = socket.getInputStream().read();
      if (next < 0) {
        throw new IOException("The server closed the connection after: " + received());
      }
      received.write(next);
    }
    return received();
  }

  /** Reads bytes and forgets them. */
  void skip(int count) throws IOException {
    socket.getInputStream().skipNBytes(count);
  }

  /** Reads until the server closes the connection, and returns the last of it. */
  String readToEnd() throws IOException {
    byte[] all = socket.getInputStream().readAllBytes();
    int tail = Math.min(all.length, 1000);
    return new String(all, all.length - tail, tail, StandardCharsets.UTF_8);
  }

  String received() {
    return received.toString(StandardCharsets.UTF_8);
  }

  @Override
  public void close() throws IOException {
    socket.close();
  }
}
