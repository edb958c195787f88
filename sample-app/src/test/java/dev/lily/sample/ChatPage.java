package dev.lily.sample;

import java.util.List;
import org.openqa.selenium.Keys;
import org.openqa.selenium.WebElement;
import org.openqa.selenium.support.ui.Select;

/** The chat page as its user sees it. */
final class ChatPage {

  private final Browser browser;

  private ChatPage(Browser browser) {
    this.browser = browser;
  }

  /** Loads the page and waits until it knows the model. */
  static ChatPage open(Browser browser, int port) {
    browser.open("http://127.0.0.1:" + port + "/");
    browser.await("the model's name", () -> browser.shows("#engine[data-state=up]"));
    return new ChatPage(browser);
  }

  void type(String text) {
    browser.find("#prompt").sendKeys(text);
  }

  void send(String text) {
    type(text + Keys.ENTER);
  }

  /** Asks and waits for the end of the answer. */
  void ask(String text) {
    send(text);
    awaitEnd();
  }

  void awaitEnd() {
    browser.await("the end of the answer", () -> !answering());
  }

  boolean answering() {
    return browser.shows("#stop");
  }

  /** Clicks the switch if it is not as wanted. */
  void set(String id, boolean on) {
    if (browser.find("#" + id).isSelected() != on) {
      browser.find("label:has(#" + id + ")").click();
    }
  }

  /** Picks what answers must look like; other schemas than the ready ones go into the editor. */
  void answerAs(String label) {
    new Select(browser.find("#format")).selectByVisibleText(label);
  }

  /** Has answers follow a schema of the user's own. */
  void answerBySchema(String schema) {
    answerAs("Own schema");
    WebElement editor = browser.find("#schema");
    editor.clear();
    editor.sendKeys(schema);
  }

  List<String> questions() {
    return texts(".question p");
  }

  List<String> answers() {
    return texts(".answer");
  }

  List<String> texts(String css) {
    return browser.findAll(css).stream().map(WebElement::getText).toList();
  }
}
