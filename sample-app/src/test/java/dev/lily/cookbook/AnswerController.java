package dev.lily.cookbook;

import org.springframework.ai.chat.model.ChatModel;
import org.springframework.ai.chat.model.ChatResponse;
import org.springframework.ai.chat.prompt.Prompt;
import org.springframework.http.MediaType;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import reactor.core.publisher.Flux;

// tag::controller[]
@RestController
class AnswerController {
  private final ChatModel model;

  AnswerController(ChatModel model) {
    this.model = model;
  }

  @GetMapping(path = "/answers", produces = MediaType.TEXT_EVENT_STREAM_VALUE)
  Flux<ChatResponse> answer(@RequestParam String question) {
    return model.stream(new Prompt(question)); // closing the connection stops the computation
  }
}
// end::controller[]
