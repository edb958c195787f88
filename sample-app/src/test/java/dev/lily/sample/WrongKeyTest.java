package dev.lily.sample;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.http.HttpStatusCode;
import org.springframework.test.web.reactive.server.WebTestClient;

@Timeout(120)
@SpringBootTest(
    webEnvironment = WebEnvironment.RANDOM_PORT,
    properties = "lily.openai.api-keys=open-sesame-1,open-sesame-2")
@ExtendWith(OutputCaptureExtension.class)
class WrongKeyTest {

  @LocalServerPort private int port;

  private HttpStatusCode status(String path, String authorization) {
    return WebTestClient.bindToServer()
        .baseUrl("http://127.0.0.1:" + port)
        .build()
        .get()
        .uri(path)
        .headers(
            headers -> {
              if (!authorization.isEmpty()) {
                headers.set("Authorization", authorization);
              }
            })
        .exchange()
        .returnResult()
        .getStatus();
  }

  @Test
  void isRefusedAndNeverLogged(CapturedOutput output) {
    for (String wrong :
        new String[] {
          "",
          "Bearer",
          "Bearer ",
          "Bearer open-sesame",
          "Bearer open-sesame-11",
          "Bearer OPEN-SESAME-1",
          "Basic open-sesame-1",
          "open-sesame-1",
          "Bearer open-sesame-1,open-sesame-2",
          "Bearer " + "x".repeat(4000),
        }) {
      assertThat(status("/v1/models", wrong).value()).as(wrong).isEqualTo(401);
    }
    assertThat(status("/v1/models", "Bearer open-sesame-1").value()).isEqualTo(200);
    assertThat(status("/v1/models", "Bearer open-sesame-2").value()).isEqualTo(200);
    assertThat(status("/actuator/health", "").value()).isEqualTo(200);
    assertThat(output.toString()).doesNotContain("sesame").doesNotContain(" ERROR ");
  }
}
