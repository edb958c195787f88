package dev.lily.spring.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.lily.engine.LilyEngine;
import dev.lily.spring.Nano;
import dev.lily.spring.ai.LilyChatModel;
import dev.lily.spring.ai.LilyChatOptions;
import java.io.File;
import java.io.IOException;
import java.lang.ref.WeakReference;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.ai.chat.client.ChatClient;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;

/** Contexts that come and go leave no mapping, thread or engine behind. */
class ContextRestartTest {

  @TempDir Path directory;

  @Test
  @EnabledOnOs(OS.LINUX)
  void leavesNoMappingThreadOrEngineAfterClosing() throws IOException {
    try (Stream<Path> files = Files.list(Nano.DIRECTORY)) {
      for (Path file : files.toList()) {
        Files.copy(file, directory.resolve(file.getFileName().toString()));
      }
    }
    ApplicationContextRunner runner =
        new ApplicationContextRunner()
            .withConfiguration(
                AutoConfigurations.of(
                    LilyEngineAutoConfiguration.class, LilyChatAutoConfiguration.class))
            .withPropertyValues(
                "lily.model=" + directory,
                "lily.context-length=128",
                "lily.chat.temperature=0",
                "lily.chat.thinking=false");
    List<Thread> before = engineThreads();
    List<WeakReference<LilyEngine>> engines = new ArrayList<>();
    for (int round = 0; round < 5; round++) {
      runner.run(
          context -> {
            engines.add(new WeakReference<>(context.getBean(LilyEngine.class)));
            assertThat(context.getBean(LilyChatModel.class).call("What is 60 - 16?"))
                .isEqualTo("60 - 16 = 44");
            assertThat(mappings()).isNotEmpty();
          });
    }
    assertThat(mappings()).isEmpty();
    // Workers end soon after the close, but nobody waits for them.
    await().untilAsserted(() -> assertThat(engineThreads()).isSubsetOf(before));
    await()
        .untilAsserted(
            () -> {
              System.gc();
              assertThat(engines).hasSize(5).allMatch(engine -> engine.refersTo(null));
            });
  }

  /** What the class loader of a restart runs; public members, because it is another package. */
  public static final class Restarted {

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Application {}

    private Restarted() {}

    /** Starts an application, asks it, and closes it. */
    public static String ask(String model) {
      SpringApplication application = new SpringApplication(Application.class);
      application.setWebApplicationType(WebApplicationType.NONE);
      try (ConfigurableApplicationContext context =
          application.run("--lily.model=" + model, "--lily.chat.temperature=0")) {
        return context
            .getBean(ChatClient.Builder.class)
            .build()
            .prompt("What is 60 - 16?")
            .options(LilyChatOptions.builder().thinking(false))
            .call()
            .content();
      }
    }
  }

  /** Loads as the developer tools do: classes of directories anew, those of jars once. */
  private static final class RestartClassLoader extends URLClassLoader {

    RestartClassLoader() throws MalformedURLException {
      super(directories(), ContextRestartTest.class.getClassLoader());
    }

    private static URL[] directories() throws MalformedURLException {
      List<URL> directories = new ArrayList<>();
      for (String entry : System.getProperty("java.class.path").split(File.pathSeparator)) {
        if (Files.isDirectory(Path.of(entry))) {
          directories.add(Path.of(entry).toUri().toURL());
        }
      }
      return directories.toArray(URL[]::new);
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
      synchronized (getClassLoadingLock(name)) {
        Class<?> loaded = findLoadedClass(name);
        if (loaded != null) {
          return loaded;
        }
        try {
          return findClass(name);
        } catch (ClassNotFoundException e) {
          return super.loadClass(name, resolve);
        }
      }
    }
  }

  @Test
  void startsAgainInTheClassLoaderOfARestart() throws Exception {
    List<Thread> before = engineThreads();
    for (int round = 0; round < 2; round++) {
      try (RestartClassLoader loader = new RestartClassLoader()) {
        Class<?> restarted = loader.loadClass(Restarted.class.getName());
        assertThat(restarted).isNotSameAs(Restarted.class);
        CompletableFuture<Object> answer = new CompletableFuture<>();
        Thread main =
            Thread.ofPlatform()
                .unstarted(
                    () -> {
                      try {
                        answer.complete(
                            restarted
                                .getMethod("ask", String.class)
                                .invoke(null, Nano.DIRECTORY.toString()));
                      } catch (ReflectiveOperationException e) {
                        answer.completeExceptionally(e);
                      }
                    });
        main.setContextClassLoader(loader);
        main.start();
        assertThat(answer.get()).isEqualTo("60 - 16 = 44");
      }
    }
    await().untilAsserted(() -> assertThat(engineThreads()).isSubsetOf(before));
  }

  private List<String> mappings() throws IOException {
    try (Stream<String> lines = Files.lines(Path.of("/proc/self/maps"))) {
      return lines.filter(line -> line.contains(directory.toString())).toList();
    }
  }

  private static List<Thread> engineThreads() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().startsWith("lily"))
        .toList();
  }
}
