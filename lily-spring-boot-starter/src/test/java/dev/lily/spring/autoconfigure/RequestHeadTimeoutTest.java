package dev.lily.spring.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.boot.reactor.netty.NettyReactiveWebServerFactory;
import org.springframework.boot.web.server.WebServer;
import reactor.core.publisher.Mono;

@Timeout(60)
class RequestHeadTimeoutTest {
  private static final String REQUEST = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

  private static WebServer server;

  @BeforeAll
  static void start() {
    NettyReactiveWebServerFactory factory = new NettyReactiveWebServerFactory(0);
    new RequestHeadTimeout(Duration.ofMillis(300)).customize(factory);
    server =
        factory.getWebServer(
            (request, response) ->
                request
                    .getBody()
                    .then(
                        response.writeWith(
                            Mono.fromSupplier(
                                () -> response.bufferFactory().wrap("well".getBytes())))));
    server.start();
  }

  @AfterAll
  static void stop() {
    server.stop();
  }

  private static Socket connect() throws IOException {
    Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.getPort());
    socket.setSoTimeout(20_000);
    return socket;
  }

  private static void send(Socket socket, String text) throws IOException {
    socket.getOutputStream().write(text.getBytes(StandardCharsets.US_ASCII));
    socket.getOutputStream().flush();
  }

  private static void readAnswer(Socket socket) throws IOException {
    InputStream input = socket.getInputStream();
    StringBuilder read = new StringBuilder();
    while (!read.toString().endsWith("well")) {
      int next = input.read();
      assertThat(next).as("closed after: " + read).isNotNegative();
      read.append((char) next);
    }
  }

  @Test
  void closesConnectionsThatSayNothing() throws IOException {
    try (Socket socket = connect()) {
      assertThat(socket.getInputStream().read()).isNegative();
    }
  }

  @Test
  void closesConnectionsThatNeverFinishTheHead() throws IOException {
    try (Socket socket = connect()) {
      send(socket, "GET / HTTP/1.1\r\nHost: localhost\r\nX-A: ");
      assertThat(socket.getInputStream().read()).isNegative();
    }
  }

  @Test
  void closesConnectionsThatNeverFinishTheHeadOfALaterRequest() throws IOException {
    try (Socket socket = connect()) {
      send(socket, REQUEST);
      readAnswer(socket);
      send(socket, "GET / HTTP/1.1\r\n");
      assertThat(socket.getInputStream().read()).isNegative();
    }
  }

  @Test
  void leavesConnectionsAloneThatIdleBetweenRequestsOrSendALongBody() throws Exception {
    try (Socket idle = connect();
        Socket uploading = connect();
        Socket silent = connect()) {
      send(idle, REQUEST);
      readAnswer(idle);
      send(uploading, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nab");
      // Ends when the limit is over.
      assertThat(silent.getInputStream().read()).isNegative();
      send(uploading, "cd");
      readAnswer(uploading);
      send(idle, REQUEST);
      readAnswer(idle);
    }
  }
}
