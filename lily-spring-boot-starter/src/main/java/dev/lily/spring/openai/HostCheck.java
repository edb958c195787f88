package dev.lily.spring.openai;

import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Tells by the {@code Host} header whether a request was meant for this machine. A web page that
 * had its own name resolved to a loopback address (DNS rebinding) cannot change that header.
 * Immutable and thread-safe.
 */
final class HostCheck {
  private static final Pattern HOST_AND_PORT =
      Pattern.compile("(\\[[0-9a-f:.]+]|[a-z0-9._-]+)(:[0-9]{0,5})?");
  private static final Pattern LOOPBACK_V4 = Pattern.compile("127(\\.(0|[1-9][0-9]{0,2})){3}");
  private static final Set<String> LOOPBACK_NAMES = Set.of("localhost", "[::1]");

  private final Set<String> allowed;

  /**
   * @param allowedHosts further names; {@code *} allows all
   */
  HostCheck(List<String> allowedHosts) {
    allowed =
        allowedHosts.stream()
            .map(host -> host.toLowerCase(Locale.ROOT))
            .collect(Collectors.toUnmodifiableSet());
  }

  /**
   * Whether a host may be asked for.
   *
   * @param host a name or an address, with or without a port
   */
  boolean allows(@Nullable String host) {
    if (allowed.contains("*")) {
      return true;
    }
    if (host == null) {
      return false;
    }
    Matcher parts = HOST_AND_PORT.matcher(host.toLowerCase(Locale.ROOT));
    if (!parts.matches()) {
      return false;
    }
    String name = parts.group(1);
    return LOOPBACK_NAMES.contains(name)
        || LOOPBACK_V4.matcher(name).matches()
        || allowed.contains(name);
  }
}
