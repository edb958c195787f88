package dev.lily.sample;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.EngineStats;
import dev.lily.engine.LilyEngine;
import java.io.IOException;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.web.server.LocalServerPort;

/** Stops an answer that would go on for thousands of tokens. */
@SpringBootTest(
    webEnvironment = WebEnvironment.RANDOM_PORT,
    properties = CancellationTest.ENDLESS_ANSWERS)
class StopButtonBrowserTest {

  @LocalServerPort private int port;
  @Autowired private LilyEngine engine;

  @Test
  void stopsTheEngineAndKeepsWhatWasSaid() throws IOException {
    try (Browser browser = Browser.start()) {
      ChatPage page = ChatPage.open(browser, port);
      EngineStats before = engine.stats();
      page.send("Tell me a story about a fox named Mia.");
      browser.await("the story's beginning", () -> page.answers().toString().contains("Mia"));
      assertThat(page.answering()).isTrue();

      browser.find("#stop").click();
      page.awaitEnd();
      browser.await("the cancellation", () -> engine.stats().cancelled() == before.cancelled() + 1);
      long steps = engine.stats().steps();
      assertThat(engine.stats().running()).isZero();
      assertThat(page.texts(".notice")).containsExactly("Stopped.");

      String story = page.answers().getFirst();
      assertThat(story).startsWith("Once upon a time");
      assertThat(engine.stats().steps()).isEqualTo(steps);
      assertThat(engine.stats().generatedTokens() - before.generatedTokens()).isLessThan(7000);
      assertThat(browser.consoleMessages()).isEmpty();
    }
  }
}
