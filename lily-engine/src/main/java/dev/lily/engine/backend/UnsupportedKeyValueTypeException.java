package dev.lily.engine.backend;

import java.util.Set;
import java.util.stream.Collectors;

/** A back end cannot keep keys and values as it was asked to. */
public class UnsupportedKeyValueTypeException extends BackendException {
  private static final long serialVersionUID = 1L;

  private final String backend;
  private final KeyValueType type;

  /**
   * A refusal.
   *
   * @param backend the back end's id
   * @param type what was asked for
   * @param supported what it can do
   */
  public UnsupportedKeyValueTypeException(
      String backend, KeyValueType type, Set<KeyValueType> supported) {
    super(
        "lily.kv-cache is '%s', but the back end %s keeps keys and values in %s only. Set it to that, or choose another back end with lily.backend."
            .formatted(
                type.word(),
                backend,
                supported.stream().map(KeyValueType::word).collect(Collectors.joining(" or "))));
    this.backend = backend;
    this.type = type;
  }

  /** The back end's id. */
  public String backend() {
    return backend;
  }

  /** What was asked for. */
  public KeyValueType type() {
    return type;
  }

  /**
   * Does nothing if the back end can do it.
   *
   * @throws UnsupportedKeyValueTypeException if it cannot
   */
  public static void check(Backend backend, KeyValueType type) {
    if (!backend.keyValueTypes().contains(type)) {
      throw new UnsupportedKeyValueTypeException(backend.id(), type, backend.keyValueTypes());
    }
  }
}
