package dev.lily.engine.backend;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;

/** Picks a back end among those on the class path, and says why. */
public final class BackendSelector {
  /** Configuration value that leaves the choice to Lily. */
  public static final String AUTO = "auto";

  private BackendSelector() {}

  /**
   * A choice.
   *
   * @param reason why this one, and why each preferred one was passed over; one line
   * @param others what may be tried if this one cannot be opened, the preferred first; empty if the
   *     user named this one
   */
  public record Selection(BackendProvider provider, String reason, List<BackendProvider> others) {
    public Selection {
      others = List.copyOf(others);
    }

    /**
     * The next choice, if this one turned out not to work.
     *
     * @param why one line, for the reason
     */
    public Optional<Selection> next(String why) {
      return first(others, new StringBuilder("; not " + provider.id() + ": " + why));
    }
  }

  /** Picks among all providers that {@link ServiceLoader} finds. */
  public static Selection select(String id) {
    List<BackendProvider> providers = new ArrayList<>();
    try {
      ServiceLoader.load(BackendProvider.class, BackendSelector.class.getClassLoader())
          .forEach(providers::add);
    } catch (ServiceConfigurationError e) {
      throw new BackendException(
          "A back end on the class path cannot be loaded: " + e.getMessage(), e);
    }
    return select(id, providers);
  }

  /**
   * Picks the provider named, or with {@value #AUTO} the available one of highest priority.
   *
   * @throws BackendException if the named one is unknown or unavailable, or none is available
   */
  public static Selection select(String id, List<BackendProvider> providers) {
    List<BackendProvider> ordered =
        providers.stream()
            .sorted(Comparator.comparingInt(BackendProvider::priority).reversed())
            .toList();
    List<String> known = ordered.stream().map(BackendProvider::id).toList();
    if (!id.equals(AUTO)) {
      BackendProvider named =
          ordered.stream()
              .filter(provider -> provider.id().equals(id))
              .findFirst()
              .orElseThrow(
                  () ->
                      new BackendException(
                          "Back end '%s' is unknown; on the class path are %s, or say '%s'"
                              .formatted(id, known, AUTO)));
      return switch (named.availability()) {
        case Availability.Available available ->
            new Selection(named, id + " as configured (" + available.device() + ")", List.of());
        case Availability.Unavailable unavailable ->
            throw new BackendException(
                "Back end '%s' is not available: %s. %s"
                    .formatted(id, unavailable.reason(), unavailable.remedy()));
      };
    }
    StringBuilder passedOver = new StringBuilder();
    return first(ordered, passedOver)
        .orElseThrow(
            () -> new BackendException("No back end is available on this machine" + passedOver));
  }

  /** The first that is available; notes why those before it are not. */
  private static Optional<Selection> first(
      List<BackendProvider> ordered, StringBuilder passedOver) {
    for (int i = 0; i < ordered.size(); i++) {
      BackendProvider provider = ordered.get(i);
      switch (provider.availability()) {
        case Availability.Available available -> {
          return Optional.of(
              new Selection(
                  provider,
                  provider.id() + " (" + available.device() + ")" + passedOver,
                  ordered.subList(i + 1, ordered.size())));
        }
        case Availability.Unavailable unavailable ->
            passedOver
                .append("; not ")
                .append(provider.id())
                .append(": ")
                .append(unavailable.reason());
      }
    }
    return Optional.empty();
  }
}
