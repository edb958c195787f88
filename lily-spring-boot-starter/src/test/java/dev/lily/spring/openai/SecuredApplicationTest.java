package dev.lily.spring.openai;

import static org.assertj.core.api.Assertions.assertThat;
import static org.springframework.security.config.Customizer.withDefaults;
import static org.springframework.security.web.server.util.matcher.ServerWebExchangeMatchers.pathMatchers;

import dev.lily.engine.generation.FinishReason;
import dev.lily.spring.AnswerRecorder;
import dev.lily.spring.RequestOverflow;
import java.time.Instant;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.http.HttpMethod;
import org.springframework.http.HttpStatus;
import org.springframework.http.HttpStatusCode;
import org.springframework.http.MediaType;
import org.springframework.security.config.annotation.web.reactive.EnableWebFluxSecurity;
import org.springframework.security.config.web.server.ServerHttpSecurity;
import org.springframework.security.core.userdetails.MapReactiveUserDetailsService;
import org.springframework.security.core.userdetails.User;
import org.springframework.security.web.server.SecurityWebFilterChain;
import org.springframework.security.web.server.csrf.CsrfWebFilter;
import org.springframework.security.web.server.util.matcher.AndServerWebExchangeMatcher;
import org.springframework.security.web.server.util.matcher.NegatedServerWebExchangeMatcher;
import org.springframework.test.web.reactive.server.WebTestClient;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.reactive.config.EnableWebFlux;
import org.springframework.web.reactive.function.server.RouterFunction;
import org.springframework.web.reactive.function.server.ServerResponse;
import reactor.core.scheduler.Schedulers;

/** Behind an application's own Spring Security, beside its own routes. */
@Timeout(60)
class SecuredApplicationTest {

  @Configuration(proxyBeanMethods = false)
  @EnableWebFlux
  @EnableWebFluxSecurity
  static class Application {
    @Bean
    MapReactiveUserDetailsService users() {
      return new MapReactiveUserDetailsService(
          User.withUsername("ann").password("{noop}secret").roles("CHAT").build(),
          User.withUsername("bob").password("{noop}secret").roles("SHOP").build());
    }

    // tag::security[]
    @Bean
    SecurityWebFilterChain security(ServerHttpSecurity http) {
      return http.authorizeExchange(
              exchanges ->
                  exchanges
                      .pathMatchers("/v1/**")
                      .hasRole("CHAT")
                      .pathMatchers(HttpMethod.GET, "/orders")
                      .permitAll()
                      .anyExchange()
                      .authenticated())
          // The API takes JSON only and no cookies, so it needs no CSRF token. The rest keeps its
          // own.
          .csrf(
              csrf ->
                  csrf.requireCsrfProtectionMatcher(
                      new AndServerWebExchangeMatcher(
                          CsrfWebFilter.DEFAULT_CSRF_MATCHER,
                          new NegatedServerWebExchangeMatcher(pathMatchers("/v1/**")))))
          .httpBasic(withDefaults())
          .build();
    }

    // end::security[]

    @Bean
    RouterFunction<ServerResponse> api(ScriptedEngine engine) {
      return OpenAiEndpoint.routes(
          new ServedModel(
              EndpointServer.MODEL, EndpointServer.CONTEXT_LENGTH, EndpointServer.TOKENIZER),
          new AnswerSource(EndpointServer.MODEL, engine, AnswerRecorder.NONE, RequestOverflow.NONE),
          OpenAiOptions.builder().build(),
          Schedulers.boundedElastic(),
          Instant::now);
    }

    @Bean
    Orders orders() {
      return new Orders();
    }
  }

  @RestController
  static class Orders {
    @GetMapping("/orders")
    String list() {
      return "none";
    }

    @GetMapping("/basket")
    String basket() {
      return "empty";
    }

    @PostMapping("/basket")
    String put() {
      return "full";
    }
  }

  private final ScriptedEngine engine =
      ScriptedEngine.playing(
          ScriptedEngine.answer("hi"), ScriptedEngine.completed(FinishReason.STOP));
  private final AnnotationConfigApplicationContext context =
      new AnnotationConfigApplicationContext();
  private WebTestClient client;

  @BeforeEach
  void start() {
    context.registerBean(ScriptedEngine.class, () -> engine);
    context.register(Application.class);
    context.refresh();
    client = WebTestClient.bindToApplicationContext(context).build();
  }

  @AfterEach
  void stop() {
    context.close();
  }

  private String ask(String user, boolean stream, HttpStatus expected) {
    byte[] body =
        client
            .post()
            .uri("http://localhost/v1/chat/completions")
            .headers(
                headers -> {
                  headers.set("Host", "localhost");
                  if (!user.isEmpty()) {
                    headers.setBasicAuth(user, "secret");
                  }
                })
            .contentType(MediaType.APPLICATION_JSON)
            .bodyValue(
                "{\"stream\":%s,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}"
                    .formatted(stream))
            .exchange()
            .expectStatus()
            .isEqualTo(expected)
            .expectBody()
            .returnResult()
            .getResponseBodyContent();
    return body == null ? "" : new String(body);
  }

  @Test
  void answersThoseWhoMayAsk() {
    assertThat(ask("ann", false, HttpStatus.OK)).contains("\"content\":\"hi\"");
    assertThat(ask("ann", true, HttpStatus.OK))
        .contains("\"content\":\"hi\"")
        .endsWith("[DONE]\n\n");
  }

  @Test
  void neverReachesTheEngineForOthers() {
    ask("", false, HttpStatus.UNAUTHORIZED);
    ask("bob", true, HttpStatus.FORBIDDEN);
    assertThat(engine.requests).isEmpty();
  }

  @Test
  void leavesTheApplicationsRoutesToItsOwnRules() {
    client
        .get()
        .uri("/orders")
        .exchange()
        .expectStatus()
        .isOk()
        .expectBody(String.class)
        .isEqualTo("none");
    assertThat(statusForBob(HttpMethod.GET)).isEqualTo(HttpStatus.OK);
    assertThat(statusForBob(HttpMethod.POST))
        .as("without a CSRF token")
        .isEqualTo(HttpStatus.FORBIDDEN);
  }

  private HttpStatusCode statusForBob(HttpMethod method) {
    return client
        .method(method)
        .uri("/basket")
        .headers(headers -> headers.setBasicAuth("bob", "secret"))
        .exchange()
        .returnResult(String.class)
        .getStatus();
  }
}
