package dev.lily.spring.openai;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;

/** How a soak's clients send and read: kept-alive connections, and sockets to break or neglect. */
final class SoakClient implements AutoCloseable {
  /** So long that only a request that is stuck takes longer. */
  private static final Duration PATIENCE = Duration.ofMinutes(10);

  /**
   * What came back.
   *
   * @param retryAfter the header, or empty
   * @param firstNanos from sending to the first bytes of the body
   * @param nanos from sending to the end
   */
  record Received(int status, String body, String retryAfter, long firstNanos, long nanos) {}

  private final int port;
  private final HttpClient http =
      HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

  SoakClient(int port) {
    this.port = port;
  }

  /** Posts a chat completion and reads all of the answer. */
  Received post(String body) throws IOException, InterruptedException {
    long start = System.nanoTime();
    HttpRequest request =
        HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/v1/chat/completions"))
            .header("Content-Type", "application/json")
            .timeout(PATIENCE)
            .POST(HttpRequest.BodyPublishers.ofString(body))
            .build();
    HttpResponse<InputStream> response =
        http.send(request, HttpResponse.BodyHandlers.ofInputStream());
    try (InputStream stream = response.body()) {
      byte[] begin = stream.readNBytes(1);
      long first = System.nanoTime() - start;
      String rest = new String(stream.readAllBytes(), StandardCharsets.UTF_8);
      return new Received(
          response.statusCode(),
          new String(begin, StandardCharsets.UTF_8) + rest,
          response.headers().firstValue("Retry-After").orElse(""),
          first,
          System.nanoTime() - start);
    }
  }

  private Socket send(String body, int receiveBuffer) throws IOException {
    Socket socket = new Socket();
    if (receiveBuffer > 0) {
      socket.setReceiveBufferSize(receiveBuffer);
    }
    socket.setSoTimeout((int) PATIENCE.toMillis());
    socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
    byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
    String head =
        "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            + "Content-Type: application/json\r\nContent-Length: "
            + bytes.length
            + "\r\n\r\n";
    socket.getOutputStream().write(head.getBytes(StandardCharsets.US_ASCII));
    socket.getOutputStream().write(bytes);
    return socket;
  }

  /** Posts and leaves the connection open. */
  Socket open(String body) throws IOException {
    return send(body, 0);
  }

  /**
   * Posts, reads so many pieces of the answer, and closes the connection.
   *
   * @param reset whether to break it instead of ending it
   * @return the status, 0 if the client left before it came
   */
  int leave(String body, int pieces, boolean reset) throws IOException {
    try (Socket socket = send(body, 0)) {
      int status = 0;
      if (pieces > 0) {
        InputStream stream = new BufferedInputStream(socket.getInputStream());
        status = head(stream);
        for (int i = 0; status == 200 && i < pieces && piece(stream).length > 0; i++) {}
      }
      if (reset) {
        socket.setSoLinger(true, 0);
      }
      return status;
    }
  }

  /** Posts and reads a stream with pauses after every so many pieces, into a small buffer. */
  Received readSlowly(String body, int pieces, Pause pause) throws Exception {
    long start = System.nanoTime();
    try (Socket socket = send(body, 4096)) {
      InputStream stream = new BufferedInputStream(socket.getInputStream(), 1024);
      int status = head(stream);
      ByteArrayOutputStream received = new ByteArrayOutputStream();
      if (status == 200) {
        int count = 0;
        for (byte[] piece = piece(stream); piece.length > 0; piece = piece(stream)) {
          received.write(piece);
          if (++count % pieces == 0) {
            pause.run();
          }
        }
      }
      long nanos = System.nanoTime() - start;
      return new Received(status, received.toString(StandardCharsets.UTF_8), "", nanos, nanos);
    }
  }

  /** Something that takes its time. */
  @FunctionalInterface
  interface Pause {
    void run() throws Exception;
  }

  /** Reads the head of an answer; its status, 0 if the connection ends in it. */
  private static int head(InputStream stream) throws IOException {
    String first = line(stream);
    for (String line = first; !line.isEmpty(); ) {
      line = line(stream);
    }
    return first.isEmpty() ? 0 : Integer.parseInt(first.split(" ")[1]);
  }

  private static String line(InputStream stream) throws IOException {
    StringBuilder line = new StringBuilder();
    for (int next = stream.read(); next >= 0 && next != '\n'; next = stream.read()) {
      line.append((char) next);
    }
    return line.toString().strip();
  }

  /** The next chunk of a body; empty at its end. */
  private static byte[] piece(InputStream stream) throws IOException {
    byte[] piece = stream.readNBytes(Integer.parseInt(line(stream), 16));
    line(stream);
    return piece;
  }

  @Override
  public void close() {
    http.close();
  }
}
