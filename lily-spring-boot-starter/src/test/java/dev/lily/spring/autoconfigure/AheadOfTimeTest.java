package dev.lily.spring.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.LilyEngine;
import dev.lily.spring.Nano;
import dev.lily.spring.actuate.LilyHealthIndicator;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.ai.chat.client.ChatClient;
import org.springframework.aot.test.generate.TestGenerationContext;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.health.contributor.Status;
import org.springframework.boot.web.server.reactive.context.AnnotationConfigReactiveWebServerApplicationContext;
import org.springframework.boot.web.server.reactive.context.ReactiveWebServerApplicationContext;
import org.springframework.context.ApplicationContextInitializer;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.aot.ApplicationContextAotGenerator;
import org.springframework.context.support.GenericApplicationContext;
import org.springframework.core.env.MapPropertySource;
import org.springframework.core.test.tools.CompileWithForkedClassLoader;
import org.springframework.core.test.tools.TestCompiler;
import org.springframework.javapoet.ClassName;
import org.springframework.test.web.reactive.server.WebTestClient;

/** The application context processed ahead of time, and started from the code that makes. */
@Timeout(120)
class AheadOfTimeTest {

  @Configuration(proxyBeanMethods = false)
  @EnableAutoConfiguration
  static class Application {}

  private static void set(GenericApplicationContext context, Map<String, Object> properties) {
    context
        .getEnvironment()
        .getPropertySources()
        .addFirst(new MapPropertySource("test", properties));
  }

  /** Without a model: processing must not open one. */
  private static ClassName process(TestGenerationContext generated) {
    AnnotationConfigReactiveWebServerApplicationContext context =
        new AnnotationConfigReactiveWebServerApplicationContext();
    context.register(Application.class);
    set(context, Map.of("lily.openai.enabled", "true"));
    ClassName initializer =
        new ApplicationContextAotGenerator().processAheadOfTime(context, generated);
    generated.writeGeneratedContent();
    return initializer;
  }

  /** In a class loader that also has the generated classes, which are of this package. */
  @Test
  @CompileWithForkedClassLoader
  void startsFromGeneratedCode() {
    TestGenerationContext generated =
        new TestGenerationContext(ClassName.get(AheadOfTimeTest.class.getPackageName(), "Aot"));
    ClassName initializer = process(generated);
    TestCompiler.forSystem()
        .with(generated)
        .compile(
            compiled -> {
              try (ReactiveWebServerApplicationContext context =
                  new ReactiveWebServerApplicationContext()) {
                set(
                    context,
                    Map.of(
                        "lily.model",
                        Nano.DIRECTORY.toString(),
                        "lily.openai.enabled",
                        "true",
                        "lily.context-length",
                        "512",
                        "lily.chat.temperature",
                        "0",
                        "lily.chat.thinking",
                        "false",
                        "server.port",
                        "0"));
                initialize(
                    context,
                    compiled.getInstance(
                        ApplicationContextInitializer.class, initializer.reflectionName()));
                context.refresh();
                assertWorks(context);
              }
            });
  }

  @SuppressWarnings("unchecked") // The generated class is an initializer of generic contexts.
  private static void initialize(
      GenericApplicationContext context, ApplicationContextInitializer<?> initializer) {
    ((ApplicationContextInitializer<GenericApplicationContext>) initializer).initialize(context);
  }

  private static void assertWorks(ReactiveWebServerApplicationContext context) {
    assertThat(
            context
                .getBean(ChatClient.Builder.class)
                .build()
                .prompt("What is 60 - 16?")
                .call()
                .content())
        .isEqualTo("60 - 16 = 44");
    assertThat(context.getBean(LilyEngine.class).memoryPlan().contextLength()).isEqualTo(512);
    assertThat(context.getBean(LilyHealthIndicator.class).health().getStatus())
        .isEqualTo(Status.UP);
    WebTestClient web =
        WebTestClient.bindToServer()
            .baseUrl("http://localhost:" + context.getWebServer().getPort())
            .build();
    for (String path : new String[] {"/v1/models/" + Nano.NAME, "/v1/openapi.json"}) {
      web.get().uri(path).exchange().expectStatus().isOk();
    }
  }
}
