package dev.lily.spring.ai;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.EngineOptions;
import dev.lily.engine.EngineStats;
import dev.lily.engine.LilyEngine;
import dev.lily.spring.Nano;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.ai.chat.client.ChatClient;
import org.springframework.ai.chat.messages.AssistantMessage;
import org.springframework.ai.chat.messages.Message;
import org.springframework.ai.chat.messages.SystemMessage;
import org.springframework.ai.chat.messages.UserMessage;
import org.springframework.ai.chat.model.ChatResponse;

/**
 * The table of {@code docs/prefix-cache.md}: what an application's prompts have and what of them is
 * read, through ChatClient on the test model. The sizes of its answers are the model's, so that the
 * prompts of later turns are measured, not reckoned.
 */
@Timeout(300)
class PrefixCacheTableTest {
  private static final Path PAGE =
      Path.of(System.getProperty("basedir", ""))
          .toAbsolutePath()
          .resolveSibling("docs/prefix-cache.md");

  private static final String SYSTEM = "You are a helpful assistant with tools.";

  private final List<String> table = new ArrayList<>();

  @Test
  void readsOfAPromptWhatIsNew() throws IOException {
    table.add("| request | prompt tokens | read |");
    table.add("|---|--:|--:|");
    try (LilyEngine engine =
        LilyEngine.open(EngineOptions.builder(Nano.DIRECTORY).contextLength(2048).build())) {
      ChatClient client =
          ChatClient.create(
              LilyChatModel.builder(engine)
                  .options(LilyChatOptions.builder().temperature(0.0).maxTokens(300).build())
                  .build());
      List<Message> chat = new ArrayList<>(List.of(new SystemMessage(SYSTEM)));
      String[] questions = {
        "My name is Clara.", "What is my name?", "What is 60 - 16?", "What is my name?"
      };
      for (int turn = 0; turn < questions.length; turn++) {
        chat.add(new UserMessage(questions[turn]));
        String answer = ask(engine, "turn " + (turn + 1) + " of a chat", client, chat, true);
        chat.add(new AssistantMessage(answer));
      }
      List<Message> unanswered = chat.subList(0, chat.size() - 1);
      ask(engine, "its last answer again", client, unanswered, true);
      ask(engine, "the same without thinking", client, unanswered, false);
      ask(engine, "and with thinking again", client, unanswered, true);
      List<Message> edited = new ArrayList<>(chat.subList(0, 5));
      edited.add(new UserMessage("Hello!"));
      ask(engine, "its third message edited", client, edited, true);
      for (int user = 2; user <= 3; user++) {
        List<Message> other =
            List.of(new SystemMessage(SYSTEM), new UserMessage("I am user " + user + "."));
        ask(engine, "user " + user + ", same system prompt", client, other, true);
      }
      measure(
          engine,
          "a tool loop of two rounds",
          () -> weather(client, new LilyChatClientTest.CityTools()));
      measure(
          engine,
          "the same question later",
          () -> weather(client, new LilyChatClientTest.CityTools()));
    }
    List<String> page = Files.readAllLines(PAGE);
    int marker = page.indexOf("<!-- table -->");
    assertThat(marker).as("the marker of the table in %s", PAGE).isNotNegative();
    assertThat(
            page.subList(marker + 1, page.size()).stream()
                .takeWhile(line -> line.startsWith("|"))
                .toList())
        .as("the table of %s; the measured one is\n%s", PAGE, String.join("\n", table))
        .isEqualTo(table);
  }

  private String ask(
      LilyEngine engine, String what, ChatClient client, List<Message> messages, boolean thinking) {
    return measure(
        engine,
        what,
        () ->
            client
                .prompt()
                .messages(messages)
                .options(LilyChatOptions.builder().thinking(thinking))
                .call()
                .chatResponse());
  }

  private static ChatResponse weather(ChatClient client, LilyChatClientTest.CityTools tools) {
    return client
        .prompt()
        .system(SYSTEM)
        .user("What is the weather in Rome?")
        .tools(tools)
        .call()
        .chatResponse();
  }

  private String measure(LilyEngine engine, String what, Supplier<ChatResponse> call) {
    EngineStats before = engine.stats();
    ChatResponse response = call.get();
    EngineStats after = engine.stats();
    long prompt = after.promptTokens() - before.promptTokens();
    long cached = after.cachedTokens() - before.cachedTokens();
    if (after.submitted() - before.submitted() == 1) {
      assertThat(response.getMetadata().getUsage().getCacheReadInputTokens()).isEqualTo(cached);
    }
    table.add(String.format(Locale.ROOT, "| %s | %,d | %,d |", what, prompt, prompt - cached));
    return response.getResult().getOutput().getText();
  }
}
