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
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

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

  /** A call is there before its round is over, and without a result until then. */
  @Test
  void showsACallBeforeTheNextOneIsWritten() {
    browser.run(
        """
        window.states = new Set();
        new MutationObserver(() => states.add(
            [...document.querySelectorAll('.tool .label')].map((node) => node.textContent).join(' ')))
          .observe(document.getElementById('log'), { childList: true, subtree: true, characterData: true });
        """);
    page.set("thinking", true);
    page.set("weather", true);
    page.ask("What is the weather in Rome and Cairo?");
    assertThat((List<?>) browser.run("return [...window.states].filter((state) => state);"))
        .map(Object::toString)
        .startsWith("calling\u2026", "calling\u2026 calling\u2026")
        .endsWith("tool call tool call");
    assertThat(page.texts(".steps > *"))
        .satisfiesExactly(
            thought -> assertThat(thought).startsWith("Thought for"),
            rome -> assertThat(rome).startsWith("get_weather\n{\"city\":\"Rome\"}"),
            cairo -> assertThat(cairo).startsWith("get_weather\n{\"city\":\"Cairo\"}"),
            thought -> assertThat(thought).startsWith("Thought for"),
            answer -> assertThat(answer).startsWith("It is clear and 24 degrees in Rome."));
  }

  @Test
  void answersByAReadySchema() throws IOException {
    page.answerAs("Person");
    page.ask("Anna is 31 years old and lives in Oslo.");
    assertThat(page.answers()).singleElement().asString().contains("Person", "follows the schema");
    assertThat(browser.find(".answer pre").getText())
        .isEqualTo(
            """
            {
              "name": "Anna",
              "age": 31,
              "city": "Oslo"
            }""");
    assertThat(browser.shows("#schema-editor")).isFalse();
    browser.find("#schema-toggle").click();
    assertThat(browser.find("#schema").getAttribute("value")).contains("\"additionalProperties\"");
    browser.screenshot("structured-light");
    browser.emulate("dark");
    browser.resize(390, 844, 3, true);
    browser.screenshot("structured-dark-mobile");
    assertThat(browser.run("return document.documentElement.scrollWidth;")).isEqualTo(390L);
  }

  @Test
  void answersByAnOwnSchemaAlsoWithTools() {
    page.set("weather", true);
    page.answerBySchema(
        """
        {"type": "array", "minItems": 2, "maxItems": 2, "items":
         {"type": "object", "required": ["city", "temperature"], "properties":
          {"city": {"enum": ["Rome", "Cairo"]}, "temperature": {"type": "integer", "maximum": 40}}}}
        """);
    page.ask("What is the weather in Rome and Cairo?");
    assertThat(page.texts(".tool")).hasSizeGreaterThanOrEqualTo(2);
    assertThat(page.answers()).singleElement().asString().contains("JSON", "follows the schema");
    JsonNode answer = JsonMapper.shared().readTree(browser.find(".answer pre").getText());
    assertThat(answer).hasSize(2);
    for (JsonNode entry : answer) {
      assertThat(entry.propertyNames()).containsExactly("city", "temperature");
      assertThat(entry.path("city").stringValue()).isIn("Rome", "Cairo");
      assertThat(entry.path("temperature").intValue()).isLessThanOrEqualTo(40);
    }
  }

  @Test
  void showsWhyASchemaIsRefusedWhereItIsWritten() throws IOException {
    page.answerBySchema(
        "{\"type\": \"object\", \"properties\": {\"a/b\": {\"type\": \"array\", \"uniqueItems\": true}}}");
    page.ask("Anna likes red.");
    assertThat(browser.find("#schema-problem").getText())
        .startsWith("At /properties/a~1b/uniqueItems: ");
    assertThat(browser.find("#schema").getAttribute("aria-invalid")).isEqualTo("true");
    assertThat(
            browser.run(
                "return document.activeElement.value.slice(document.activeElement.selectionStart, document.activeElement.selectionEnd);"))
        .isEqualTo("\"uniqueItems\"");
    assertThat(browser.find("#prompt").getAttribute("value")).isEqualTo("Anna likes red.");
    assertThat(page.questions()).isEmpty();
    assertThat(browser.shows("#welcome")).isTrue();
    browser.screenshot("schema-refused");
    assertThat(browser.consoleMessages()).singleElement().asString().contains("400");

    browser.find("#schema").clear();
    browser.find("#schema").sendKeys("{\"type\"");
    assertThat(browser.shows("#schema-problem")).isFalse();
    page.send("");
    assertThat(browser.find("#schema-problem").getText()).startsWith("The schema is not JSON");
    assertThat(page.questions()).isEmpty();

    page.answerAs("Text");
    assertThat(browser.shows("#schema-editor")).isFalse();
    page.send("");
    page.awaitEnd();
    assertThat(page.questions()).containsExactly("Anna likes red.");
  }

  @Test
  void doesNotVouchForAnAnswerThatWasStopped() {
    page.answerBySchema(
        "{\"type\": \"array\", \"items\": {\"type\": \"string\", \"maxLength\": 9}, \"minItems\": 900}");
    page.send("Repeat: one");
    browser.await("the beginning", () -> browser.shows(".structured"));
    browser.find("#stop").click();
    page.awaitEnd();
    assertThat(page.texts(".notice")).containsExactly("Stopped.");
    assertThat(page.answers()).singleElement().asString().doesNotContain("follows the schema");
    assertThat(browser.find(".answer pre").getText()).startsWith("[");
  }

  /** What is shown is what was written, but for white space, wherever the text is cut. */
  @Test
  void formatsUnfinishedJson() {
    Object shown =
        browser.run(
            """
            const { showJson } = await import('/json-view.js');
            const node = document.createElement('pre');
            const text = '{"a": [], "b": {}, "c":[1, {"d\\\\"": "x, \\\\u00e9{ "}], "e": null}';
            const bare = (json) => json.replace(/[ \\n]/g, '');
            for (let end = 0; end <= text.length; end++) {
              showJson(node, text.slice(0, end));
              if (bare(node.textContent) !== bare(text.slice(0, end))) return [text.slice(0, end), node.textContent];
            }
            return [JSON.stringify(JSON.parse(text), null, 2) === node.textContent.replace('\\\\u00e9', '\u00e9'),
              [...node.querySelectorAll('.key')].map((key) => key.textContent).join(' ')];
            """);
    assertThat(shown).isEqualTo(List.of(true, "\"a\" \"b\" \"c\" \"d\\\"\" \"e\""));
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
    page.set("weather", false);
    page.answerAs("Person");
    page.ask("Anna is 31 years old and lives in Oslo.");
    browser.screenshot("chat-light");
    browser.emulate("dark");
    browser.screenshot("chat-dark");
    browser.emulate("light");
    browser.resize(390, 844, 3, true);
    browser.screenshot("chat-mobile");
    assertThat(browser.run("return document.documentElement.scrollWidth;")).isEqualTo(390L);
  }
}
