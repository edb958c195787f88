package dev.lily.spring.ai;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.spring.Nano;
import io.micrometer.context.ContextRegistry;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationRegistry;
import io.micrometer.observation.ObservationView;
import io.micrometer.observation.contextpropagation.ObservationThreadLocalAccessor;
import io.micrometer.observation.tck.TestObservationRegistry;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.ai.chat.client.ChatClient;
import org.springframework.ai.chat.model.ToolContext;
import org.springframework.ai.tool.annotation.Tool;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Hooks;
import reactor.core.publisher.Mono;

/** What a caller has in thread-locals, Reactor's context and the tool context reaches its tools. */
@Timeout(300)
class ContextPropagationTest {

  private static final String KEY = "lily.test.user";
  private static final ThreadLocal<String> USER = new ThreadLocal<>();

  @BeforeAll
  static void register() {
    ContextRegistry.getInstance().registerThreadLocalAccessor(KEY, USER);
  }

  @AfterAll
  static void remove() {
    ContextRegistry.getInstance().removeThreadLocalAccessor(KEY);
  }

  @AfterEach
  void disable() {
    Hooks.disableAutomaticContextPropagation();
    USER.remove();
  }

  private final TestObservationRegistry registry = TestObservationRegistry.create();

  private final class CityTools {
    final List<String> users = new CopyOnWriteArrayList<>();
    final List<List<String>> observations = new CopyOnWriteArrayList<>();
    final List<Object> contexts = new CopyOnWriteArrayList<>();

    @Tool(name = "get_weather", description = "Get the weather in a given city.")
    String weather(String city, ToolContext context) {
      users.add(String.valueOf(USER.get()));
      observations.add(ancestors(registry));
      contexts.add(context.getContext().get("tenant"));
      return "sunny, 25 degrees";
    }
  }

  /** Names of the current observation and those around it, innermost first. */
  private static List<String> ancestors(ObservationRegistry registry) {
    List<String> names = new ArrayList<>();
    ObservationView current = registry.getCurrentObservation();
    while (current != null) {
      names.add(current.getContextView().getName());
      current = current.getContextView().getParentObservation();
    }
    return names;
  }

  private Flux<String> stream(CityTools tools) {
    return request(tools).stream().content();
  }

  private ChatClient.ChatClientRequestSpec request(CityTools tools) {
    LilyChatModel model =
        LilyChatModel.builder(Nano.engine())
            .observationRegistry(registry)
            .options(
                LilyChatOptions.builder().temperature(0.0).thinking(true).maxTokens(300).build())
            .build();
    return ChatClient.create(model, registry)
        .prompt()
        .system("You are a helpful assistant with tools.")
        .user("What is the weather in Rome and Cairo?")
        .toolContext(Map.of("tenant", "acme"))
        .tools(tools);
  }

  @Test
  void showsToolsOfAStreamTheThreadLocalsOfTheCaller() {
    Hooks.enableAutomaticContextPropagation();
    CityTools tools = new CityTools();
    USER.set("clara");
    stream(tools).blockLast();
    assertThat(tools.users).containsExactly("clara", "clara");
    assertThat(tools.contexts).containsExactly("acme", "acme");
  }

  @Test
  void showsToolsOfAStreamTheValuesOfReactorsContext() {
    Hooks.enableAutomaticContextPropagation();
    CityTools tools = new CityTools();
    stream(tools).contextWrite(context -> context.put(KEY, "clara")).blockLast();
    assertThat(tools.users).containsExactly("clara", "clara");
  }

  @Test
  void keepsTheCallersOfConcurrentStreamsApart() {
    Hooks.enableAutomaticContextPropagation();
    List<String> names = List.of("clara", "laura", "emma");
    List<List<String>> users =
        Flux.fromIterable(names)
            .flatMap(
                name -> {
                  CityTools tools = new CityTools();
                  return stream(tools)
                      .contextWrite(context -> context.put(KEY, name))
                      .then(Mono.fromSupplier(() -> tools.users));
                })
            .collectList()
            .block();
    assertThat(users)
        .containsExactlyInAnyOrder(
            List.of("clara", "clara"), List.of("laura", "laura"), List.of("emma", "emma"));
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void observesToolsOfAStreamBelowTheCallersObservation(boolean automatic) {
    if (automatic) {
      Hooks.enableAutomaticContextPropagation();
      ObservationThreadLocalAccessor.getInstance().setObservationRegistry(registry);
    }
    CityTools tools = new CityTools();
    Observation caller = Observation.start("caller", registry);
    if (automatic) {
      caller.scoped(() -> stream(tools).blockLast());
    } else {
      stream(tools)
          .contextWrite(context -> context.put(ObservationThreadLocalAccessor.KEY, caller))
          .blockLast();
    }
    caller.stop();
    assertThat(tools.observations)
        .hasSize(2)
        .allSatisfy(
            names -> {
              assertThat(names).startsWith("spring.ai.tool").endsWith("caller");
              assertThat(names).contains("spring.ai.chat.client");
            });
  }

  @Test
  void showsToolsOfACallTheThreadLocalsAndTheObservationOfTheCaller() {
    CityTools tools = new CityTools();
    USER.set("clara");
    Observation caller = Observation.start("caller", registry);
    caller.scoped(() -> request(tools).call().content());
    caller.stop();
    assertThat(tools.users).containsExactly("clara", "clara");
    assertThat(tools.observations)
        .allSatisfy(names -> assertThat(names).startsWith("spring.ai.tool").endsWith("caller"));
  }
}
