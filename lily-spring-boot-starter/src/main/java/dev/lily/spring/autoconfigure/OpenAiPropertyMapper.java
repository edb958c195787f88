package dev.lily.spring.autoconfigure;

import dev.lily.spring.openai.InvalidOpenAiOptionException;
import dev.lily.spring.openai.OpenAiOptions;
import java.net.InetAddress;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.DataObjectPropertyName;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.util.unit.DataSize;

/** Validates {@link LilyOpenAiProperties} and turns them into options. */
final class OpenAiPropertyMapper {

  private OpenAiPropertyMapper() {}

  /**
   * How the endpoint serves.
   *
   * @param chat what requests leave unsaid
   * @param serverAddress what the server is bound to; {@code null} is all addresses
   * @throws InvalidConfigurationPropertyValueException naming the property that is wrong
   */
  static OpenAiOptions options(
      LilyOpenAiProperties properties,
      LilyProperties.Chat chat,
      @Nullable InetAddress serverAddress) {
    String basePath = properties.basePath();
    List<String> apiKeys = properties.apiKeys();
    if (apiKeys != null && apiKeys.isEmpty()) {
      // Somebody wanted keys, and an empty variable must not mean that everybody may come in.
      throw invalid(properties, "apiKeys", "it is empty; to serve without keys, leave it unset");
    }
    try {
      return OpenAiOptions.builder()
          .basePath(basePath.equals("/") ? "" : basePath)
          .apiKeys(apiKeys == null ? List.of() : apiKeys)
          .checkHost(isReachableByLoopback(serverAddress))
          .allowedHosts(properties.allowedHosts())
          .allowedOrigins(properties.allowedOrigins())
          .modelAliases(properties.modelAliases())
          .maxRequestBytes(bytes(properties.maxRequestSize()))
          .requestTimeout(properties.requestTimeout())
          .maxChoices(properties.maxChoices())
          .heartbeat(properties.heartbeat())
          .defaults(defaults(chat))
          .build();
    } catch (InvalidOpenAiOptionException e) {
      throw invalid(properties, e.option(), String.valueOf(e.getMessage()));
    }
  }

  /** Whether only this machine can connect. */
  static boolean isLoopback(@Nullable InetAddress serverAddress) {
    return serverAddress != null && serverAddress.isLoopbackAddress();
  }

  private static boolean isReachableByLoopback(@Nullable InetAddress serverAddress) {
    return serverAddress == null
        || serverAddress.isAnyLocalAddress()
        || serverAddress.isLoopbackAddress();
  }

  /** A size beyond an int is as good as none: no such body could be held. */
  private static int bytes(DataSize size) {
    return Math.clamp(size.toBytes(), Integer.MIN_VALUE, Integer.MAX_VALUE);
  }

  private static OpenAiOptions.Defaults defaults(LilyProperties.Chat chat) {
    return new OpenAiOptions.Defaults(
        chat.maxTokens(),
        chat.minTokens() == null ? 0 : chat.minTokens(),
        chat.thinking(),
        Boolean.TRUE.equals(chat.preserveThinking()),
        chat.stop() == null ? List.of() : chat.stop(),
        chat.timeout(),
        chat.seed());
  }

  private static InvalidConfigurationPropertyValueException invalid(
      LilyOpenAiProperties properties, String option, String reason) {
    String name = option.equals("maxRequestBytes") ? "maxRequestSize" : option;
    Object value =
        switch (name) {
          case "basePath" -> properties.basePath();
          case "allowedHosts" -> properties.allowedHosts();
          case "allowedOrigins" -> properties.allowedOrigins();
          case "modelAliases" -> properties.modelAliases();
          case "maxRequestSize" -> properties.maxRequestSize();
          case "requestTimeout" -> properties.requestTimeout();
          case "maxChoices" -> properties.maxChoices();
          case "heartbeat" -> properties.heartbeat();
          default -> "(not shown)";
        };
    return new InvalidConfigurationPropertyValueException(
        LilyOpenAiProperties.PREFIX + "." + DataObjectPropertyName.toDashedForm(name),
        value,
        reason);
  }
}
