package dev.lily.sample;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.openqa.selenium.Keys;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.web.server.LocalServerPort;

@SpringBootTest(webEnvironment = WebEnvironment.RANDOM_PORT)
class ChatPageBrowserTest {

  private static @Nullable Browser started;

  @LocalServerPort private int port;
  private Browser browser;
  private ChatPage page;

  @AfterAll
  static void closeBrowser() {
    if (started != null) {
      started.close();
    }
  }

  @BeforeEach
  void openPage() throws IOException {
    // Here and not once for all: a class that is skipped as a whole counts as no test at all.
    if (started == null) {
      started = Browser.start();
    }
    browser = started;
    browser.resize(1200, 800, 2, false);
    browser.emulate("light");
    page = ChatPage.open(browser, port);
  }

  @AfterEach
  void nothingWentWrongInTheConsole() {
    if (browser != null) {
      assertThat(browser.consoleMessages()).isEmpty();
    }
  }

  @Test
  void namesModelAndBackEnd() {
    assertThat(browser.find("#model").getText()).isEqualTo("lily-nano-4bit");
    assertThat(browser.find("#backend").getText()).contains("CPU").contains("threads");
    assertThat(browser.find("#caution").getText()).contains("demonstration model");
  }

  @Test
  void greetsWithExamplesThatCanBeClicked() throws IOException {
    browser.screenshot("welcome-light");
    browser.emulate("dark");
    browser.screenshot("welcome-dark");
    assertThat(page.texts(".examples button")).hasSize(6);
    browser.find(".examples li:nth-child(5) button").click();
    page.awaitEnd();
    assertThat(browser.shows("#welcome")).isFalse();
    assertThat(page.questions()).containsExactly("Write a Java line that prints hello");
    assertThat(browser.find(".answer pre code").getText())
        .isEqualTo("System.out.println(\"hello\");");
    assertThat(browser.find(".code-head span").getText()).isEqualTo("java");
  }

  @Test
  void answersWithFigures() {
    page.ask("What is 47 + 38?");
    assertThat(page.answers()).containsExactly("47 + 38 = 85");
    assertThat(page.texts(".figures span"))
        .hasSize(4)
        .satisfiesExactly(
            tokens -> assertThat(tokens).matches("\\d+ tokens"),
            rate -> assertThat(rate).matches("[\\d.]+ tokens/s"),
            first -> assertThat(first).matches("first output after [\\d.]+ s"),
            prompt -> assertThat(prompt).matches("\\d+ prompt tokens(, \\d+ cached)?"));
    assertThat(browser.shows(".thought")).isFalse();
  }

  @Test
  void remembersEarlierTurnsUntilANewChat() {
    page.ask("My name is Clara.");
    page.ask("What is my name?");
    assertThat(page.answers()).hasSize(2).last().asString().contains("Clara");
    browser.find("#new-chat").click();
    assertThat(page.questions()).isEmpty();
    assertThat(browser.shows("#welcome")).isTrue();
    page.ask("What is my name?");
    assertThat(page.answers()).singleElement().asString().doesNotContain("Clara");
  }

  @Test
  void foldsTheThoughtAway() {
    page.set("thinking", true);
    page.ask("What is 47 + 38?");
    assertThat(page.answers()).containsExactly("47 + 38 = 85");
    assertThat(browser.find(".thought summary").getText()).matches("Thought for [\\d.]+ s");
    assertThat(browser.shows(".thought p")).isFalse();
    browser.find(".thought summary").click();
    assertThat(browser.find(".thought p").getText()).contains("Ones: 7 + 8 = 15");
  }

  @Test
  void showsToolCallsAsCardsAndAnswersFromTheirResults() {
    page.set("weather", true);
    page.ask("What is the weather in Rome and Cairo?");
    assertThat(page.texts(".tool")).hasSize(2);
    assertThat(page.texts(".tool")).first().asString().contains("get_weather", "Rome", "24");
    assertThat(page.texts(".tool")).last().asString().contains("get_weather", "Cairo", "33");
    assertThat(page.answers())
        .containsExactly(
            "It is clear and 24 degrees in Rome. It is sunny and 33 degrees in Cairo.");
  }

  @Test
  void shiftEnterStartsALineAndEnterSends() {
    page.type("Repeat: one" + Keys.chord(Keys.SHIFT, Keys.ENTER) + "two");
    assertThat(page.questions()).isEmpty();
    page.send("");
    page.awaitEnd();
    assertThat(page.questions()).containsExactly("Repeat: one\ntwo");
    assertThat(browser.find("#prompt").getAttribute("value")).isEmpty();
  }

  @Test
  void sendsNothingWhileTheMessageIsBlank() {
    page.send("  ");
    assertThat(page.questions()).isEmpty();
    assertThat(browser.find("#send").isEnabled()).isFalse();
  }

  @Test
  void explainsAFailureAndTriesAgain() {
    browser.run(
        "window.realFetch = window.fetch; window.fetch = () => Promise.reject(new TypeError());");
    page.ask("What is 2 + 3?");
    assertThat(browser.find(".failure p").getText())
        .isEqualTo("The application does not answer. Is it still running?");
    browser.run("window.fetch = window.realFetch;");
    browser.find(".failure button").click();
    page.awaitEnd();
    assertThat(page.questions()).containsExactly("What is 2 + 3?");
    assertThat(page.answers()).containsExactly("2 + 3 = 5");
    assertThat(browser.shows(".failure")).isFalse();
  }

  @Test
  void readsEventsHoweverTheyAreCut() {
    String stream =
        ": comment\\r\\ndata: a\\r\\n\\r\\nevent: x\\ndata:b\\ndata:  c\\n\\ndata\\r\\rdata:{}\\n\\ndata: incomplete";
    Object results =
        browser.run(
            "const { EventParser } = await import('/sse.js');"
                + "const text = '"
                + stream
                + "';"
                + "const results = new Set();"
                + "for (let a = 0; a <= text.length; a++) for (let b = a; b <= text.length; b++) {"
                + "  const parser = new EventParser();"
                + "  const pieces = [text.slice(0, a), text.slice(a, b), text.slice(b)];"
                + "  results.add(JSON.stringify(pieces.flatMap((piece) => parser.push(piece))));"
                + "}"
                + "return [...results];");
    assertThat(results).isEqualTo(List.of("[\"a\",\"b\\n c\",\"\",\"{}\"]"));
  }

  @Test
  void turnsNothingThatAModelWritesIntoMarkup() {
    Object html =
        browser.run(
            "const { MarkdownView } = await import('/markdown.js');"
                + "const element = document.createElement('div');"
                + "const view = new MarkdownView(element);"
                + "const text = '# <b>T</b>\\n**<i>x</i>** `<img src=x onerror=alert(1)>`\\n- <u>y</u>\\n```<s>\\n```html\\n<script>alert(1)</script>';"
                + "for (let end = 1; end <= text.length; end++) view.show(text.slice(0, end));"
                + "return [...element.querySelectorAll('*')].map((node) => node.localName).join(' ');");
    assertThat(html).isEqualTo("p p strong code ul li p div div span button pre code");
  }

  @Test
  void looksGoodOnEveryScreen() throws IOException {
    page.set("thinking", true);
    page.ask("What is 47 + 38?");
    page.set("thinking", false);
    page.set("weather", true);
    page.ask("What is the weather in Rome and Cairo?");
    browser.screenshot("chat-light");
    browser.emulate("dark");
    browser.screenshot("chat-dark");
    browser.emulate("light");
    browser.resize(390, 844, 3, true);
    browser.screenshot("chat-mobile");
    assertThat(browser.run("return document.documentElement.scrollWidth;")).isEqualTo(390L);
  }
}
