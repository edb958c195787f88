package dev.lily.cookbook;

import dev.lily.spring.ai.LilyChatOptions;
import org.springframework.ai.chat.messages.AssistantMessage;
import org.springframework.ai.chat.model.ChatModel;
import org.springframework.ai.chat.prompt.Prompt;
import org.springframework.http.MediaType;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import reactor.core.publisher.Flux;

/** Streams the reasoning apart from the answer. */
// tag::reasoning[]
@RestController
class ThinkingAloud {

  /** The whole reasoning so far, or the next piece of the answer. */
  record Piece(String reasoning, String text) {}

  private final ChatModel chatModel;

  ThinkingAloud(ChatModel chatModel) {
    this.chatModel = chatModel;
  }

  @GetMapping(path = "/thoughts", produces = MediaType.TEXT_EVENT_STREAM_VALUE)
  Flux<Piece> stream(@RequestParam String question) {
    return chatModel.stream(new Prompt(question, LilyChatOptions.builder().thinking(true).build()))
        .map(response -> piece(response.getResult().getOutput()));
  }

  private static Piece piece(AssistantMessage message) {
    Object reasoning = message.getMetadata().getOrDefault("reasoningContent", "");
    return new Piece(reasoning.toString(), message.getText());
  }
}
// end::reasoning[]
