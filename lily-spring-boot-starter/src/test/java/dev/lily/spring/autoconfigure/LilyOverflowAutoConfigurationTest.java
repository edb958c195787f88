package dev.lily.spring.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.LilyEngine;
import dev.lily.spring.Nano;
import dev.lily.spring.RequestOverflow;
import dev.lily.spring.ScriptedChatModel;
import dev.lily.spring.ai.LilyChatModel;
import dev.lily.spring.ai.LilyChatOptions;
import dev.lily.spring.ai.Overflow;
import dev.lily.spring.ai.OverflowChatModel;
import dev.lily.spring.ai.OverflowOptions;
import dev.lily.spring.ai.OverflowPolicy;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.ai.chat.client.ChatClient;
import org.springframework.ai.chat.model.ChatModel;
import org.springframework.ai.chat.model.ChatResponse;
import org.springframework.ai.chat.prompt.Prompt;
import org.springframework.ai.model.chat.client.autoconfigure.ChatClientAutoConfiguration;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

@Timeout(120)
@ExtendWith(OutputCaptureExtension.class)
class LilyOverflowAutoConfigurationTest {
  @Configuration(proxyBeanMethods = false)
  static class BySize {
    // tag::policy[]
    @Bean
    OverflowPolicy bigPromptsGoToTheCluster() {
      return prompt -> prompt.getContents().length() > 50_000;
    }
    // end::policy[]
  }

  private final ScriptedChatModel cluster = ScriptedChatModel.saying("far away");

  /**
   * Without another chat model. The engine's own configuration stays out: it would close the one
   * that the tests share.
   */
  private final ApplicationContextRunner alone =
      new ApplicationContextRunner()
          .withConfiguration(
              AutoConfigurations.of(
                  LilyChatAutoConfiguration.class,
                  LilyOverflowAutoConfiguration.class,
                  LilyActuatorAutoConfiguration.class,
                  ChatClientAutoConfiguration.class))
          .withBean(
              LilyEngine.class, Nano::engine, definition -> definition.setDestroyMethodName(""))
          .withPropertyValues("lily.model=" + Nano.DIRECTORY);

  private final ApplicationContextRunner off =
      alone.withBean("cluster", ChatModel.class, () -> cluster);

  private final ApplicationContextRunner on = off.withPropertyValues("lily.overflow.enabled=true");

  private static ChatResponse ask(ChatClient.Builder clients) {
    return ask(clients, "hi");
  }

  private static ChatResponse ask(ChatClient.Builder clients, String question) {
    return clients.build().prompt(question).call().chatResponse();
  }

  private static void assertFails(ApplicationContextRunner runner, String... messages) {
    runner.run(
        context ->
            assertThat(context)
                .getFailure()
                .rootCause()
                .isInstanceOf(InvalidConfigurationPropertyValueException.class)
                .message()
                .contains(messages));
  }

  @Test
  void isOffByDefault() {
    off.run(
        context ->
            assertThat(context)
                .hasNotFailed()
                .doesNotHaveBean(Overflow.class)
                .doesNotHaveBean(OverflowChatModel.class)
                .doesNotHaveBean(RequestOverflow.class));
  }

  @Test
  void sendsAwayWhatThePolicySays() {
    on.withUserConfiguration(BySize.class)
        .run(
            context -> {
              ChatClient.Builder clients = context.getBean(ChatClient.Builder.class);
              assertThat(ask(clients, "hi").getMetadata().<Object>get(Overflow.ANSWERED_BY))
                  .isEqualTo(OverflowChatModel.LOCAL);
              assertThat(
                      ask(clients, "a".repeat(50_001))
                          .getMetadata()
                          .<Object>get(Overflow.ANSWERED_BY))
                  .isEqualTo("cluster");
            });
  }

  @Test
  void isTheModelThatApplicationsGetAndCountsWhatLeaves(CapturedOutput output) {
    on.withBean(MeterRegistry.class, SimpleMeterRegistry::new)
        .withBean(OverflowPolicy.class, () -> prompt -> true)
        .run(
            context -> {
              assertThat(context.getBean(ChatModel.class)).isInstanceOf(OverflowChatModel.class);
              ChatResponse response = ask(context.getBean(ChatClient.Builder.class));
              assertThat(response.getMetadata().<Object>get(Overflow.ANSWERED_BY))
                  .isEqualTo("cluster");
              assertThat(
                      context
                          .getBean(MeterRegistry.class)
                          .get("lily.overflow")
                          .tags("reason", "policy", "model", "cluster")
                          .counter()
                          .count())
                  .isEqualTo(1);
              assertThat(output)
                  .containsOnlyOnce("Requests overflow to chat model 'cluster'")
                  .contains("queue-full: true, prompt-too-long: true, policies: 1");
            });
  }

  @Test
  void asksPoliciesWithTheOptionsOfTheClient() {
    on.withBean(
            OverflowPolicy.class, () -> prompt -> prompt.getOptions() instanceof LilyChatOptions)
        .run(
            context -> {
              ask(context.getBean(ChatClient.Builder.class));
              assertThat(cluster.prompts).hasSize(1);
            });
  }

  @Test
  void letsTheApplicationSayRequestsInTheOtherModelsWords() {
    on.withBean(OverflowPolicy.class, () -> prompt -> true)
        .withBean(
            OverflowOptions.class,
            () ->
                asked ->
                    cluster.getOptions().mutate().model("thinks:" + asked.getThinking()).build())
        .run(
            context -> {
              context
                  .getBean(ChatModel.class)
                  .call(new Prompt("hi", LilyChatOptions.builder().thinking(true).build()));
              assertThat(cluster.prompts)
                  .extracting(prompt -> prompt.getOptions().getModel())
                  .containsExactly("thinks:true");
            });
  }

  @Test
  void takesTheNamedOneOfSeveralModels() {
    ScriptedChatModel second = ScriptedChatModel.saying("second");
    on.withBean("second", ChatModel.class, () -> second)
        .withBean(OverflowPolicy.class, () -> prompt -> true)
        .withPropertyValues("lily.overflow.model=second")
        .run(
            context -> {
              ask(context.getBean(ChatClient.Builder.class));
              assertThat(second.prompts).hasSize(1);
              assertThat(cluster.prompts).isEmpty();
            });
  }

  @Test
  void leavesTheChoiceOfTheProviderToSpringAi() {
    on.withPropertyValues("spring.ai.model.chat=other")
        .run(
            context -> {
              assertThat(context)
                  .doesNotHaveBean(LilyChatModel.class)
                  .doesNotHaveBean(OverflowChatModel.class);
              assertThat(context.getBean(ChatModel.class)).isSameAs(cluster);
            });
    on.withPropertyValues("spring.ai.model.chat=lily")
        .run(
            context ->
                assertThat(context.getBean(ChatModel.class)).isInstanceOf(OverflowChatModel.class));
  }

  @Test
  void yieldsToBeansOfTheApplication() {
    Overflow own = Overflow.builder(LilyChatOptions.builder().build(), cluster, "mine").build();
    on.withBean(Overflow.class, () -> own)
        .run(context -> assertThat(context.getBean(Overflow.class)).isSameAs(own));
  }

  @Test
  void failsTheStartIfThereIsNoSuchModel() {
    assertFails(
        on.withPropertyValues("lily.overflow.model=gone"),
        "lily.overflow.model",
        "there is no chat model bean of this name",
        "the chat model beans besides Lily's are cluster");
  }

  @Test
  void failsTheStartIfTheModelIsLilyItself() {
    for (String name : List.of("lilyChatModel", "lilyOverflowChatModel")) {
      assertFails(
          on.withPropertyValues("lily.overflow.model=" + name),
          "lily.overflow.model",
          "this is Lily itself",
          "cluster");
    }
  }

  @Test
  void failsTheStartIfSeveralModelsCouldBeMeant() {
    assertFails(
        on.withBean("second", ChatModel.class, () -> ScriptedChatModel.saying("second")),
        "lily.overflow.model",
        "several chat models could be meant",
        "cluster, second");
  }

  @Test
  void failsTheStartIfThereIsNoOtherModel() {
    assertFails(
        alone.withPropertyValues("lily.overflow.enabled=true"),
        "lily.overflow.model",
        "there is no other chat model bean",
        "spring.ai.model.chat");
  }

  @Test
  void failsTheStartIfAnotherModelIsPrimaryAlready() {
    assertFails(
        on.withBean(
                "first",
                ChatModel.class,
                () -> ScriptedChatModel.saying("first"),
                definition -> definition.setPrimary(true))
            .withPropertyValues("lily.overflow.model=cluster"),
        "lily.overflow.enabled",
        "first",
        "@Primary");
  }

  @Test
  void publishesMetadataWithADescriptionOfEveryProperty() throws IOException {
    JsonNode metadata;
    try (InputStream file =
        LilyOverflowProperties.class.getResourceAsStream(
            "/META-INF/spring-configuration-metadata.json")) {
      assertThat(file).as("the annotation processor's output").isNotNull();
      metadata = JsonMapper.shared().readTree(file);
    }
    List<String> described = new ArrayList<>();
    for (JsonNode property : metadata.path("properties")) {
      if (!property.path("description").asString("").isBlank()) {
        described.add(property.path("name").asString());
      }
    }
    assertThat(described)
        .contains(
            "lily.overflow.enabled",
            "lily.overflow.model",
            "lily.overflow.when-queue-full",
            "lily.overflow.when-prompt-too-long");
    assertThat(metadata.path("hints").findValuesAsString("name")).contains("lily.overflow.model");
  }

  @Test
  void readsWhichRefusalsSendAway(CapturedOutput output) {
    on.withPropertyValues(
            "lily.overflow.when-queue-full=false", "lily.overflow.when-prompt-too-long=false")
        .run(
            context -> {
              assertThat(context).hasNotFailed();
              assertThat(output).contains("queue-full: false, prompt-too-long: false, policies: 0");
            });
  }
}
