package dev.lily.sample;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Assumptions;
import org.openqa.selenium.By;
import org.openqa.selenium.OutputType;
import org.openqa.selenium.WebElement;
import org.openqa.selenium.chrome.ChromeDriver;
import org.openqa.selenium.chrome.ChromeDriverService;
import org.openqa.selenium.chrome.ChromeOptions;
import org.openqa.selenium.logging.LogEntry;
import org.openqa.selenium.logging.LogType;
import org.openqa.selenium.support.ui.WebDriverWait;
import org.slf4j.LoggerFactory;
import org.springframework.util.FileSystemUtils;

/**
 * A headless Chromium with an empty profile. Taken from {@code LILY_CHROME} and {@code
 * LILY_CHROMEDRIVER}, or from the {@code PATH}; never downloaded.
 */
final class Browser implements AutoCloseable {

  private static final Duration PATIENCE = Duration.ofMinutes(2);
  private static final Path SCREENSHOTS = Path.of("target", "screenshots");

  /** Warns that it has no typed DevTools interface for the browser's version; none is used. */
  private static final Logger DEVTOOLS = Logger.getLogger("org.openqa.selenium.devtools");

  private static final Logger CHROMIUM = Logger.getLogger("org.openqa.selenium.chromium");

  private static final AtomicBoolean WARNED = new AtomicBoolean();

  private final ChromeDriver driver;
  private final Path profile;

  private Browser(ChromeDriver driver, Path profile) {
    this.driver = driver;
    this.profile = profile;
  }

  /**
   * Starts a browser. Without one the calling test is skipped, with the reason; with {@code
   * LILY_REQUIRE_BROWSER=true} it fails instead.
   */
  static Browser start() throws IOException {
    Path chrome = find("LILY_CHROME", "chromium", "chromium-browser", "google-chrome", "chrome");
    Path chromeDriver = find("LILY_CHROMEDRIVER", "chromedriver");
    DEVTOOLS.setLevel(Level.SEVERE);
    CHROMIUM.setLevel(Level.SEVERE);
    Path profile = Files.createTempDirectory("lily-browser");
    ChromeOptions options = new ChromeOptions();
    options.setBinary(chrome.toFile());
    options.addArguments(
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--user-data-dir=" + profile);
    ChromeDriverService service =
        new ChromeDriverService.Builder()
            .usingDriverExecutable(chromeDriver.toFile())
            .usingAnyFreePort()
            .build();
    Browser browser = new Browser(new ChromeDriver(service, options), profile);
    browser.emulate("light");
    return browser;
  }

  private static Path find(String variable, String... names) {
    String given = System.getenv(variable);
    Optional<Path> found =
        given != null && !given.isEmpty()
            ? Optional.of(Path.of(given)).filter(Files::isExecutable)
            : onPath(names);
    if (found.isPresent()) {
      return found.get();
    }
    String reason =
        given != null && !given.isEmpty()
            ? "%s is %s, which cannot be executed".formatted(variable, given)
            : "The PATH has none of %s, and %s is not set"
                .formatted(Arrays.toString(names), variable);
    if (Boolean.parseBoolean(System.getenv("LILY_REQUIRE_BROWSER"))) {
      return Assertions.fail(reason);
    }
    if (!WARNED.getAndSet(true)) {
      LoggerFactory.getLogger(Browser.class).warn("Browser tests are skipped. {}", reason);
    }
    return Assumptions.abort(reason);
  }

  private static Optional<Path> onPath(String... names) {
    List<String> directories =
        List.of(System.getenv().getOrDefault("PATH", "").split(Pattern.quote(File.pathSeparator)));
    return Arrays.stream(names)
        .flatMap(name -> directories.stream().map(directory -> Path.of(directory, name)))
        .filter(Files::isExecutable)
        .findFirst();
  }

  void open(String url) {
    driver.get(url);
  }

  /** The only element of that kind. */
  WebElement find(String css) {
    return driver.findElement(By.cssSelector(css));
  }

  List<WebElement> findAll(String css) {
    return driver.findElements(By.cssSelector(css));
  }

  /** Whether an element is there and can be seen. */
  boolean shows(String css) {
    return findAll(css).stream().anyMatch(WebElement::isDisplayed);
  }

  void await(String what, BooleanSupplier condition) {
    new WebDriverWait(driver, PATIENCE, Duration.ofMillis(20))
        .withMessage(what)
        .until(unused -> condition.getAsBoolean());
  }

  /** Runs the body of an asynchronous function in the page and returns what it returns. */
  Object run(String body) {
    return driver.executeAsyncScript(
        "const done = arguments[arguments.length - 1];"
            + "(async () => {"
            + body
            + "})().then(done, (failure) => done(String(failure)));");
  }

  /** Shows pages as a reader with this colour scheme, who wants no motion, sees them. */
  void emulate(String colourScheme) {
    driver.executeCdpCommand(
        "Emulation.setEmulatedMedia",
        Map.of(
            "features",
            List.of(
                Map.of("name", "prefers-color-scheme", "value", colourScheme),
                Map.of("name", "prefers-reduced-motion", "value", "reduce"))));
  }

  /** Size of the page, in CSS pixels. */
  void resize(int width, int height, int pixelRatio, boolean mobile) {
    driver.executeCdpCommand(
        "Emulation.setDeviceMetricsOverride",
        Map.of(
            "width", width, "height", height, "deviceScaleFactor", pixelRatio, "mobile", mobile));
  }

  /** Saves what the page shows under {@code target/screenshots}. */
  void screenshot(String name) throws IOException {
    Files.createDirectories(SCREENSHOTS);
    Files.write(SCREENSHOTS.resolve(name + ".png"), driver.getScreenshotAs(OutputType.BYTES));
  }

  /** What the page wrote to the console, or failed to load, since the last call. */
  List<String> consoleMessages() {
    return driver.manage().logs().get(LogType.BROWSER).getAll().stream()
        .map(LogEntry::toString)
        .toList();
  }

  @Override
  public void close() {
    driver.quit();
    try {
      FileSystemUtils.deleteRecursively(profile);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
