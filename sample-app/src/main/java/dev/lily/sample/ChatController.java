package dev.lily.sample;

import dev.lily.engine.generation.ContextOverflowException;
import dev.lily.engine.generation.EngineBusyException;
import dev.lily.engine.generation.GenerationException;
import dev.lily.engine.generation.InvalidRequestException;
import org.springframework.ai.chat.client.ChatClient;
import org.springframework.ai.chat.model.ChatModel;
import org.springframework.http.HttpStatus;
import org.springframework.http.MediaType;
import org.springframework.http.ProblemDetail;
import org.springframework.util.Assert;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/**
 * Asks the model through Spring AI: for a whole answer, a growing one, and one that needs a tool.
 */
@RestController
@RequestMapping("/api")
class ChatController {

  record Question(String question) {
    Question {
      Assert.hasText(question, "question must not be empty");
    }
  }

  record Answer(String answer) {}

  /** A piece of an answer. As JSON, because a bare text in an event would lose its first blank. */
  record Piece(String text) {}

  private final ChatModel chatModel;
  private final ChatClient chatClient;
  private final WeatherTools weatherTools;

  ChatController(ChatModel chatModel, ChatClient.Builder chatClient, WeatherTools weatherTools) {
    this.chatModel = chatModel;
    this.chatClient = chatClient.build();
    this.weatherTools = weatherTools;
  }

  // tag::ask[]
  @GetMapping("/ask")
  Mono<Answer> ask(@RequestParam String question) {
    return Mono.fromCallable(() -> chatModel.call(question))
        .subscribeOn(Schedulers.boundedElastic()) // call() blocks; an event loop must not
        .map(Answer::new);
  }

  // end::ask[]

  @PostMapping("/ask")
  Mono<Answer> ask(@RequestBody Question question) {
    return ask(question.question());
  }

  // tag::stream[]
  @GetMapping(path = "/stream", produces = MediaType.TEXT_EVENT_STREAM_VALUE)
  Flux<Piece> stream(@RequestParam String question) {
    return chatModel.stream(question).filter(text -> !text.isEmpty()).map(Piece::new);
  }

  // end::stream[]

  // tag::weather[]
  @GetMapping("/weather")
  Mono<Answer> weather(@RequestParam String question) {
    return Mono.fromCallable(() -> chatClient.prompt(question).tools(weatherTools).call().content())
        .subscribeOn(Schedulers.boundedElastic())
        .map(Answer::new);
  }

  // end::weather[]

  // tag::errors[]
  @ExceptionHandler({InvalidRequestException.class, ContextOverflowException.class})
  ProblemDetail refused(GenerationException e) {
    return ProblemDetail.forStatusAndDetail(HttpStatus.BAD_REQUEST, e.getMessage());
  }

  @ExceptionHandler(EngineBusyException.class)
  ProblemDetail busy(EngineBusyException e) {
    return ProblemDetail.forStatusAndDetail(HttpStatus.SERVICE_UNAVAILABLE, e.getMessage());
  }
  // end::errors[]
}
