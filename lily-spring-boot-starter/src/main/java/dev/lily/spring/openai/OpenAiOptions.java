package dev.lily.spring.openai;

import java.time.Duration;
import java.util.List;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * How the endpoint serves.
 *
 * @param basePath where the paths of the API begin, for example {@code /v1}; empty for the root
 * @param apiKeys a client must send one of them; none means that clients need no key
 * @param checkHost without keys, refuse requests whose {@code Host} is neither a loopback name nor
 *     one of {@code allowedHosts}, so that no web page can reach the server by DNS rebinding
 * @param allowedHosts further host names, without a port; {@code *} allows all
 * @param allowedOrigins origins of web pages, besides the server's own, that may use the API;
 *     {@code *} allows all
 * @param modelAliases names by which clients may ask for the loaded model, besides its own
 * @param maxRequestBytes most bytes of a request's body
 * @param requestTimeout how long a request's body may take to arrive
 * @param maxChoices most choices of one request
 * @param heartbeat after how much silence a comment is sent to a stream
 * @param defaults what requests leave unsaid
 */
public record OpenAiOptions(
    String basePath,
    List<String> apiKeys,
    boolean checkHost,
    List<String> allowedHosts,
    List<String> allowedOrigins,
    List<String> modelAliases,
    int maxRequestBytes,
    Duration requestTimeout,
    int maxChoices,
    Duration heartbeat,
    Defaults defaults) {

  private static final Pattern BASE_PATH = Pattern.compile("(/[A-Za-z0-9._~-]+)*");
  private static final Pattern API_KEY = Pattern.compile("[!-~]+");
  private static final Pattern HOST = Pattern.compile("\\*|[A-Za-z0-9._-]+|\\[[0-9A-Fa-f:.]+]");
  private static final Pattern ORIGIN =
      Pattern.compile("\\*|null|[A-Za-z][A-Za-z0-9+.-]*://[A-Za-z0-9._:\\[\\]-]+");

  public OpenAiOptions {
    apiKeys = List.copyOf(apiKeys);
    allowedHosts = List.copyOf(allowedHosts);
    allowedOrigins = List.copyOf(allowedOrigins);
    modelAliases = List.copyOf(modelAliases);
    require(
        BASE_PATH.matcher(basePath).matches(),
        "basePath",
        "it must be empty or begin, but not end, with a slash, and have plain characters only");
    require(
        apiKeys.stream().allMatch(key -> API_KEY.matcher(key).matches()),
        "apiKeys",
        "a key is empty or has characters other than visible ASCII ones; to serve without keys, set none");
    require(
        allowedHosts.stream().allMatch(host -> HOST.matcher(host).matches()),
        "allowedHosts",
        "an entry must be a host name or address without a port, IPv6 in brackets, or *");
    require(
        allowedOrigins.stream().allMatch(origin -> ORIGIN.matcher(origin).matches()),
        "allowedOrigins",
        "an entry must be an origin such as https://chat.example:8443, without a path, or null, or *");
    require(modelAliases.stream().noneMatch(String::isBlank), "modelAliases", "an entry is empty");
    require(maxRequestBytes >= 1, "maxRequestBytes", "it must be at least 1 byte");
    require(requestTimeout.toMillis() >= 1, "requestTimeout", "it must be at least 1 ms");
    require(maxChoices >= 1, "maxChoices", "it must be at least 1");
    require(heartbeat.toMillis() >= 1, "heartbeat", "it must be at least 1 ms");
  }

  private static void require(boolean condition, String option, String reason) {
    if (!condition) {
      throw new InvalidOpenAiOptionException(option, reason);
    }
  }

  /**
   * Whether requests of other machines are refused: there is neither a key that they could send nor
   * a host for which they were let in.
   */
  public boolean servesThisMachineOnly() {
    return checkHost && apiKeys.isEmpty() && allowedHosts.isEmpty();
  }

  /** Without the keys. */
  @Override
  public String toString() {
    return "OpenAiOptions[basePath=%s, %d apiKeys, checkHost=%s, allowedHosts=%s, allowedOrigins=%s, modelAliases=%s, maxRequestBytes=%d, requestTimeout=%s, maxChoices=%d, heartbeat=%s, defaults=%s]"
        .formatted(
            basePath,
            apiKeys.size(),
            checkHost,
            allowedHosts,
            allowedOrigins,
            modelAliases,
            maxRequestBytes,
            requestTimeout,
            maxChoices,
            heartbeat,
            defaults);
  }

  /**
   * What requests leave unsaid, besides the engine's own defaults of sampling.
   *
   * @param seed the engine's default seed, from which further choices get theirs
   */
  public record Defaults(
      @Nullable Integer maxTokens,
      int minTokens,
      @Nullable Boolean thinking,
      boolean preserveThinking,
      List<String> stopStrings,
      @Nullable Duration timeout,
      @Nullable Long seed) {

    /** Nothing said. */
    public static final Defaults NONE = new Defaults(null, 0, null, false, List.of(), null, null);

    public Defaults {
      stopStrings = List.copyOf(stopStrings);
    }
  }

  public static Builder builder() {
    return new Builder();
  }

  /** Collects options by name; {@link #build} validates them. */
  public static final class Builder {
    private String basePath = "/v1";
    private List<String> apiKeys = List.of();
    private boolean checkHost = true;
    private List<String> allowedHosts = List.of();
    private List<String> allowedOrigins = List.of();
    private List<String> modelAliases = List.of();
    private int maxRequestBytes = 8 << 20;
    private Duration requestTimeout = Duration.ofSeconds(30);
    private int maxChoices = 8;
    private Duration heartbeat = Duration.ofSeconds(10);
    private Defaults defaults = Defaults.NONE;

    private Builder() {}

    public Builder basePath(String value) {
      basePath = value;
      return this;
    }

    public Builder apiKeys(List<String> value) {
      apiKeys = value;
      return this;
    }

    public Builder checkHost(boolean value) {
      checkHost = value;
      return this;
    }

    public Builder allowedHosts(List<String> value) {
      allowedHosts = value;
      return this;
    }

    public Builder allowedOrigins(List<String> value) {
      allowedOrigins = value;
      return this;
    }

    public Builder modelAliases(List<String> value) {
      modelAliases = value;
      return this;
    }

    public Builder maxRequestBytes(int value) {
      maxRequestBytes = value;
      return this;
    }

    public Builder requestTimeout(Duration value) {
      requestTimeout = value;
      return this;
    }

    public Builder maxChoices(int value) {
      maxChoices = value;
      return this;
    }

    public Builder heartbeat(Duration value) {
      heartbeat = value;
      return this;
    }

    public Builder defaults(Defaults value) {
      defaults = value;
      return this;
    }

    /**
     * The options.
     *
     * @throws InvalidOpenAiOptionException naming the option that is wrong
     */
    public OpenAiOptions build() {
      return new OpenAiOptions(
          basePath,
          apiKeys,
          checkHost,
          allowedHosts,
          allowedOrigins,
          modelAliases,
          maxRequestBytes,
          requestTimeout,
          maxChoices,
          heartbeat,
          defaults);
    }
  }
}
