package dev.lily.spring.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.spring.Nano;
import dev.lily.spring.ai.LilyChatModel;
import dev.lily.spring.ai.OverflowChatModel;
import dev.lily.spring.ai.OverflowPolicy;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.ai.chat.client.ChatClient;
import org.springframework.ai.chat.model.ChatModel;
import org.springframework.ai.chat.model.ChatResponse;
import org.springframework.ai.chat.prompt.Prompt;
import org.springframework.ai.model.chat.client.autoconfigure.ChatClientAutoConfiguration;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;

@Timeout(120)
class LilyOverflowAutoConfigurationTest {

  /** A model of another provider. */
  private static final class Echo implements ChatModel {
    @Override
    public ChatResponse call(Prompt prompt) {
      return LilyChatModel.builder(Nano.engine()).build().call(new Prompt("What is 1 + 1?"));
    }
  }

  private final ApplicationContextRunner runner =
      new ApplicationContextRunner()
          .withConfiguration(
              AutoConfigurations.of(
                  LilyEngineAutoConfiguration.class,
                  LilyChatAutoConfiguration.class,
                  LilyOverflowAutoConfiguration.class,
                  LilyActuatorAutoConfiguration.class,
                  ChatClientAutoConfiguration.class))
          .withPropertyValues("lily.model=" + Nano.DIRECTORY, "lily.context-length=512")
          .withBean("cluster", ChatModel.class, Echo::new);

  @Test
  void isOffByDefault() {
    runner.run(context -> assertThat(context).doesNotHaveBean(OverflowChatModel.class));
  }

  @Test
  void isTheModelOfClientsAndCountsWhatLeaves() {
    runner
        .withBean(MeterRegistry.class, SimpleMeterRegistry::new)
        .withBean(OverflowPolicy.class, () -> prompt -> true)
        .withPropertyValues("lily.overflow.enabled=true", "lily.overflow.model=cluster")
        .run(
            context -> {
              ChatResponse response =
                  context
                      .getBean(ChatClient.Builder.class)
                      .build()
                      .prompt("hi")
                      .call()
                      .chatResponse();
              assertThat((Object) response.getMetadata().get(OverflowChatModel.ANSWERED_BY))
                  .isEqualTo("cluster");
              assertThat(
                      context
                          .getBean(MeterRegistry.class)
                          .get("lily.overflow")
                          .tag("reason", "policy")
                          .tag("model", "cluster")
                          .counter()
                          .count())
                  .isEqualTo(1);
            });
  }

  @Test
  void namesThePropertyIfThereIsNoSuchModel() {
    for (String name : new String[] {"", "gone", "lilyChatModel"}) {
      runner
          .withPropertyValues("lily.overflow.enabled=true", "lily.overflow.model=" + name)
          .run(
              context ->
                  assertThat(context)
                      .getFailure()
                      .rootCause()
                      .hasMessageContaining("lily.overflow.model"));
    }
  }
}
