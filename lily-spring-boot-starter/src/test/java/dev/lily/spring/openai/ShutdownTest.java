package dev.lily.spring.openai;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.lily.engine.LilyEngine;
import dev.lily.spring.Nano;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;

/**
 * An application that stops while clients wait for answers. The timeout is shorter than the web
 * server's patience with open streams.
 */
@Timeout(120)
class ShutdownTest {

  @Configuration(proxyBeanMethods = false)
  @EnableAutoConfiguration
  static class Application {}

  private static ConfigurableApplicationContext start(String grace) {
    return new SpringApplicationBuilder(Application.class)
        .web(WebApplicationType.REACTIVE)
        .registerShutdownHook(false)
        .run(
            "--server.address=127.0.0.1",
            "--server.port=0",
            "--server.shutdown=graceful",
            "--spring.lifecycle.timeout-per-shutdown-phase=10m",
            "--lily.model=" + Nano.DIRECTORY,
            "--lily.context-length=2048",
            "--lily.max-sessions=1",
            "--lily.openai.enabled=true",
            "--lily.shutdown-grace=" + grace);
  }

  private static RawConnection connect(ConfigurableApplicationContext application)
      throws IOException {
    int port = application.getEnvironment().getRequiredProperty("local.server.port", Integer.class);
    return new RawConnection(new Socket(InetAddress.getLoopbackAddress(), port));
  }

  private static String story(int tokens, boolean stream) {
    return "{'stream':%b,'temperature':0,'min_tokens':%d,'max_tokens':%d,'reasoning_effort':'none','messages':[{'role':'user','content':'Tell me a story.'}]}"
        .formatted(stream, tokens, tokens);
  }

  @Test
  void endsStreamsWithAnErrorAndRefusesWaitingRequestsWhenTheGraceIsOver() throws IOException {
    ConfigurableApplicationContext application = start("0s");
    LilyEngine engine = application.getBean(LilyEngine.class);
    try (RawConnection stream = connect(application);
        RawConnection waiting = connect(application)) {
      stream.post(story(1900, true));
      stream.readUntil("\"content\":\"", 2);
      waiting.post(story(1, false));
      await().until(() -> engine.stats().queued() == 1);
      application.close();
      assertThat(stream.readUntil("\"code\":\"service_unavailable\""))
          .contains("data: {\"error\":")
          .doesNotContain("\"finish_reason\":\"");
      assertThat(stream.readToEnd()).doesNotContain("[DONE]");
      assertThat(waiting.readUntil("\"code\":\"service_unavailable\""))
          .startsWith("HTTP/1.1 503 ")
          .contains("Retry-After: ");
    } finally {
      application.close();
    }
    assertThat(engine.stats().alive()).isFalse();
    assertThat(engine.stats().kvPagesUsed()).isZero();
  }

  @Test
  void letsAStreamEndWithinTheGrace() throws IOException {
    ConfigurableApplicationContext application = start("60s");
    try (RawConnection stream = connect(application)) {
      stream.post(story(40, true));
      stream.readUntil("\"content\":\"", 2);
      application.close();
      assertThat(stream.readUntil("data: [DONE]\n\n"))
          .contains("\"finish_reason\":\"length\"")
          .doesNotContain("\"error\"");
    } finally {
      application.close();
    }
  }
}
