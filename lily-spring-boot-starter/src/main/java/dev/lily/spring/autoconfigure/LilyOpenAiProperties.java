package dev.lily.spring.autoconfigure;

import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;
import org.springframework.util.unit.DataSize;

/**
 * Properties of the OpenAI-compatible endpoint.
 *
 * @param enabled Whether a reactive web application serves the OpenAI-compatible API.
 * @param basePath Where the paths of the API begin.
 * @param apiKeys Keys of which clients must send one. If unset, clients need none, and only
 *     requests for a loopback name or an allowed host are served. Must not be empty.
 * @param allowedHosts Host names, without a port, by which clients may reach the server if no key
 *     is set, besides localhost, 127.0.0.1 and [::1]. A * allows all.
 * @param allowedOrigins Origins of web pages, for instance https://chat.example, that may use the
 *     API besides pages of this server. A * allows all.
 * @param modelAliases Names by which clients may ask for the loaded model, besides its own.
 * @param maxRequestSize Most bytes of a request's body.
 * @param requestTimeout How long a client may take to send a request, its head and its body each.
 *     The time for the head holds for every request of a Netty server.
 * @param maxChoices Most choices of one request.
 * @param heartbeat After how much silence a comment is sent to a stream.
 */
@ConfigurationProperties(LilyOpenAiProperties.PREFIX)
public record LilyOpenAiProperties(
    @DefaultValue("false") boolean enabled,
    @DefaultValue("/v1") String basePath,
    @Nullable List<String> apiKeys,
    @DefaultValue List<String> allowedHosts,
    @DefaultValue List<String> allowedOrigins,
    @DefaultValue List<String> modelAliases,
    @DefaultValue("8MB") DataSize maxRequestSize,
    @DefaultValue("30s") Duration requestTimeout,
    @DefaultValue("8") int maxChoices,
    @DefaultValue("10s") Duration heartbeat) {

  static final String PREFIX = "lily.openai";

  /** Without the keys. */
  @Override
  public String toString() {
    return "LilyOpenAiProperties[enabled=%s, basePath=%s, %d apiKeys]"
        .formatted(enabled, basePath, apiKeys == null ? 0 : apiKeys.size());
  }
}
