package dev.lily.spring.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.lily.engine.EngineOptions;
import dev.lily.engine.LilyEngine;
import dev.lily.engine.generation.EngineClosedException;
import dev.lily.spring.AnswerRecorder;
import dev.lily.spring.Nano;
import dev.lily.spring.actuate.LilyHealthIndicator;
import dev.lily.spring.ai.CutAnswerException;
import dev.lily.spring.ai.LilyChatModel;
import dev.lily.spring.ai.LilyChatOptions;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.observation.tck.TestObservationRegistry;
import io.micrometer.observation.tck.TestObservationRegistryAssert;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.ai.chat.client.ChatClient;
import org.springframework.ai.chat.messages.AssistantMessage;
import org.springframework.ai.chat.model.ChatModel;
import org.springframework.ai.chat.model.ChatResponse;
import org.springframework.ai.chat.model.Generation;
import org.springframework.ai.chat.observation.DefaultChatModelObservationConvention;
import org.springframework.ai.chat.prompt.Prompt;
import org.springframework.ai.model.chat.client.autoconfigure.ChatClientAutoConfiguration;
import org.springframework.ai.model.tool.autoconfigure.ToolCallingAutoConfiguration;
import org.springframework.beans.factory.BeanCreationException;
import org.springframework.beans.factory.NoUniqueBeanDefinitionException;
import org.springframework.beans.factory.UnsatisfiedDependencyException;
import org.springframework.beans.factory.config.BeanDefinitionCustomizer;
import org.springframework.boot.actuate.endpoint.annotation.Endpoint;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

class LilyAutoConfigurationTest {

  private final ApplicationContextRunner withoutModel =
      new ApplicationContextRunner()
          .withConfiguration(
              AutoConfigurations.of(
                  LilyEngineAutoConfiguration.class,
                  LilyChatAutoConfiguration.class,
                  LilyActuatorAutoConfiguration.class));

  private final ApplicationContextRunner runner =
      withoutModel.withPropertyValues(
          "lily.model=" + Nano.DIRECTORY,
          "lily.context-length=512",
          "lily.max-sessions=1",
          "lily.chat.temperature=0",
          "lily.chat.thinking=false");

  @ParameterizedTest
  @ValueSource(strings = {"", "spring.ai.model.chat=lily"})
  void isOnUnlessAnotherProviderIsChosen(String property) {
    runner
        .withPropertyValues(property)
        .run(
            context -> {
              assertThat(context).hasSingleBean(LilyEngine.class);
              assertThat(context).hasSingleBean(LilyChatModel.class);
              assertThat(context).getBean(ChatModel.class).isInstanceOf(LilyChatModel.class);
              assertThat(context.getBean(ChatModel.class).call("What is 60 - 16?"))
                  .isEqualTo("60 - 16 = 44");
            });
  }

  @ParameterizedTest
  @ValueSource(strings = {"none", "openai"})
  void opensNoModelWhenAnotherProviderIsChosen(String provider) {
    withoutModel
        .withPropertyValues("spring.ai.model.chat=" + provider)
        .run(
            context -> {
              assertThat(context).hasNotFailed();
              assertThat(context).doesNotHaveBean(LilyEngine.class);
              assertThat(context).doesNotHaveBean(ChatModel.class);
              assertThat(context).doesNotHaveBean("lilyHealthIndicator");
            });
  }

  @Test
  void opensNoModelForAnEndpointThatThisKindOfApplicationDoesNotServe() {
    withoutModel
        .withPropertyValues("spring.ai.model.chat=none", "lily.openai.enabled=true")
        .run(context -> assertThat(context).hasNotFailed().doesNotHaveBean(LilyEngine.class));
  }

  @Test
  void givesPropertiesToEngineAndModel() {
    runner
        .withPropertyValues("lily.chat.max-tokens=3", "lily.cpu.threads=1", "lily.backend=cpu")
        .run(
            context -> {
              LilyEngine engine = context.getBean(LilyEngine.class);
              assertThat(engine.memoryPlan().contextLength()).isEqualTo(512);
              assertThat(engine.memoryPlan().maxSessions()).isEqualTo(1);
              assertThat(engine.model().deviceDetail()).contains("1 thread");
              LilyChatModel model = context.getBean(LilyChatModel.class);
              assertThat(model.getOptions())
                  .isEqualTo(
                      LilyChatOptions.builder()
                          .model(Nano.NAME)
                          .temperature(0.0)
                          .thinking(false)
                          .maxTokens(3)
                          .build());
              ChatResponse response = model.call(new Prompt("Tell me a story."));
              assertThat(response.getMetadata().getUsage().getCompletionTokens()).isEqualTo(3);
            });
  }

  @Test
  void closesTheEngineWithTheContext() {
    AtomicReference<LilyEngine> engine = new AtomicReference<>();
    AtomicReference<LilyChatModel> model = new AtomicReference<>();
    runner.run(
        context -> {
          engine.set(context.getBean(LilyEngine.class));
          model.set(context.getBean(LilyChatModel.class));
          assertThat(engine.get().stats().alive()).isTrue();
        });
    assertThat(engine.get().stats().alive()).isFalse();
    assertThatExceptionOfType(EngineClosedException.class)
        .isThrownBy(() -> model.get().call("Hello"));
  }

  static final AtomicReference<LilyEngine> ENGINE_OF_FAILED_START = new AtomicReference<>();

  @Configuration(proxyBeanMethods = false)
  static class FailingLater {
    @Bean
    String failing(LilyEngine engine) {
      ENGINE_OF_FAILED_START.set(engine);
      throw new IllegalStateException("fails half-way");
    }
  }

  @Test
  void closesTheEngineOfAStartThatFailsHalfWay() {
    runner
        .withUserConfiguration(FailingLater.class)
        .run(context -> assertThat(context).hasFailed());
    assertThat(ENGINE_OF_FAILED_START.get().stats().alive()).isFalse();
  }

  @Test
  void yieldsToTheUsersEngineAndOpensNone() {
    withoutModel
        .withBean(
            "mine",
            LilyEngine.class,
            () -> LilyEngine.open(EngineOptions.builder(Nano.DIRECTORY).contextLength(64).build()))
        .run(
            context -> {
              assertThat(context).getBeanNames(LilyEngine.class).containsExactly("mine");
              assertThat(context).hasSingleBean(LilyChatModel.class);
              assertThat(context).hasSingleBean(LilyHealthIndicator.class);
            });
  }

  @Test
  void yieldsToTheUsersChatModelButNotToAnotherProviders() {
    LilyChatModel mine = LilyChatModel.builder(Nano.engine()).build();
    runner
        .withBean(LilyChatModel.class, () -> mine)
        .run(context -> assertThat(context).getBean(LilyChatModel.class).isSameAs(mine));
    ChatModel other = prompt -> new ChatResponse(List.of());
    runner
        .withBean("other", ChatModel.class, () -> other)
        .run(
            context ->
                assertThat(context.getBeansOfType(ChatModel.class))
                    .containsOnlyKeys("other", "lilyChatModel"));
  }

  private static final ChatModel OTHER =
      prompt -> new ChatResponse(List.of(new Generation(new AssistantMessage("the other"))));

  private ApplicationContextRunner beside(BeanDefinitionCustomizer... customizers) {
    return runner
        .withConfiguration(
            AutoConfigurations.of(
                ToolCallingAutoConfiguration.class, ChatClientAutoConfiguration.class))
        .withBean("other", ChatModel.class, () -> OTHER, customizers);
  }

  @Test
  void answersBesideAnotherProviderWithAClientEach() {
    beside()
        .run(
            context -> {
              ChatClient lily = ChatClient.create(context.getBean(LilyChatModel.class));
              ChatClient other = ChatClient.create(context.getBean("other", ChatModel.class));
              assertThat(lily.prompt("What is 60 - 16?").call().content())
                  .isEqualTo("60 - 16 = 44");
              assertThat(other.prompt("What is 60 - 16?").call().content()).isEqualTo("the other");
              assertThatExceptionOfType(UnsatisfiedDependencyException.class)
                  .isThrownBy(() -> context.getBean(ChatClient.Builder.class))
                  .withMessageContaining("lilyChatModel")
                  .withMessageContaining("other");
            });
  }

  @Test
  void leavesTheClientBuilderToThePrimaryModel() {
    beside(definition -> definition.setPrimary(true))
        .run(
            context ->
                assertThat(
                        context
                            .getBean(ChatClient.Builder.class)
                            .build()
                            .prompt("What is 60 - 16?")
                            .call()
                            .content())
                    .isEqualTo("the other"));
  }

  @Test
  void refusesTwoEnginesNamingBoth() {
    withoutModel
        .withBean(
            "one",
            LilyEngine.class,
            Nano::engine,
            definition -> definition.setDestroyMethodName(""))
        .withBean(
            "two",
            LilyEngine.class,
            Nano::engine,
            definition -> definition.setDestroyMethodName(""))
        .run(
            context ->
                assertThat(context)
                    .getFailure()
                    .rootCause()
                    .isInstanceOf(NoUniqueBeanDefinitionException.class)
                    .hasMessageContaining("one,two"));
  }

  @Test
  void feedsTheUsersRegistryConventionAndRecorder() {
    TestObservationRegistry registry = TestObservationRegistry.create();
    AtomicInteger answers = new AtomicInteger();
    AnswerRecorder recorder = (usage, timings) -> answers.incrementAndGet();
    runner
        .withBean(TestObservationRegistry.class, () -> registry)
        .withBean(AnswerRecorder.class, () -> recorder)
        .withBean(
            DefaultChatModelObservationConvention.class,
            () ->
                new DefaultChatModelObservationConvention() {
                  @Override
                  public String getName() {
                    return "my.chat";
                  }
                })
        .run(context -> context.getBean(LilyChatModel.class).call("What is 60 - 16?"));
    TestObservationRegistryAssert.assertThat(registry)
        .hasSingleObservationThat()
        .hasNameEqualTo("my.chat");
    assertThat(answers).hasValue(1);
  }

  @Test
  void servesTheChatClientBuilder() {
    runner
        .withConfiguration(
            AutoConfigurations.of(
                ToolCallingAutoConfiguration.class, ChatClientAutoConfiguration.class))
        .run(
            context ->
                assertThat(
                        context
                            .getBean(ChatClient.Builder.class)
                            .build()
                            .prompt("What is 60 - 16?")
                            .call()
                            .content())
                    .isEqualTo("60 - 16 = 44"));
  }

  @Test
  void clientsOfTheBuilderSayThatAnAnswerForAnEntityWasCut() {
    runner
        .withConfiguration(
            AutoConfigurations.of(
                ToolCallingAutoConfiguration.class, ChatClientAutoConfiguration.class))
        .withPropertyValues("lily.chat.max-tokens=3")
        .run(
            context -> {
              ChatClient client = context.getBean(ChatClient.Builder.class).build();
              assertThatExceptionOfType(CutAnswerException.class)
                  .isThrownBy(() -> client.prompt("What is 60 - 16?").call().entity(Integer.class));
            });
  }

  @Test
  void startsWithoutActuator() {
    runner
        .withClassLoader(
            new FilteredClassLoader(HealthIndicator.class, Endpoint.class, MeterRegistry.class))
        .run(
            context -> {
              assertThat(context).hasNotFailed();
              assertThat(context).hasSingleBean(LilyChatModel.class);
              assertThat(context).doesNotHaveBean("lilyHealthIndicator");
            });
  }

  @Test
  void failsTheStartOnAWrongChatPropertyBeforeItOpensTheModel() {
    withoutModel
        .withPropertyValues("lily.model=does/not/exist", "lily.chat.top-p=7")
        .run(
            context ->
                assertThat(context)
                    .getFailure()
                    .isInstanceOf(BeanCreationException.class)
                    .rootCause()
                    .hasMessageContaining("lily.chat.top-p"));
  }
}
