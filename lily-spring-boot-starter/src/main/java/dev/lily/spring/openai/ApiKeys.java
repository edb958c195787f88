package dev.lily.spring.openai;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The keys that clients may send as bearer tokens. Compares digests, and all of them, so that the
 * time taken tells nothing about a key. Immutable and thread-safe.
 */
final class ApiKeys {
  private static final String SCHEME = "Bearer ";

  private final List<byte[]> digests;

  ApiKeys(List<String> keys) {
    digests = keys.stream().map(ApiKeys::digest).toList();
  }

  /** Whether clients need a key at all. */
  boolean isEmpty() {
    return digests.isEmpty();
  }

  /**
   * Whether a request has a right key.
   *
   * @param authorization value of the {@code Authorization} header
   */
  boolean accepts(@Nullable String authorization) {
    if (authorization == null
        || !authorization.regionMatches(true, 0, SCHEME, 0, SCHEME.length())) {
      return false;
    }
    byte[] sent = digest(authorization.substring(SCHEME.length()).strip());
    boolean accepted = false;
    for (byte[] digest : digests) {
      accepted |= MessageDigest.isEqual(digest, sent);
    }
    return accepted;
  }

  private static byte[] digest(String key) {
    try {
      return MessageDigest.getInstance("SHA-256").digest(key.getBytes(StandardCharsets.UTF_8));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("Every Java platform has SHA-256", e);
    }
  }
}
