package dev.lily.spring.ai;

import dev.lily.engine.chat.ResponsePart;
import dev.lily.engine.chat.ToolCall;
import dev.lily.engine.generation.FinishReason;
import dev.lily.engine.generation.GenerationEvent;
import dev.lily.engine.generation.GenerationHandle;
import dev.lily.engine.generation.GenerationListener;
import dev.lily.engine.generation.InvalidRequestException;
import dev.lily.engine.generation.Timings;
import dev.lily.engine.generation.Usage;
import dev.lily.spring.OverflowFailedException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Subscription;
import org.springframework.ai.chat.messages.AssistantMessage;
import org.springframework.ai.chat.model.ChatResponse;
import org.springframework.ai.chat.model.Generation;
import reactor.core.publisher.BaseSubscriber;
import reactor.core.publisher.SignalType;

/**
 * The other model's answer as the engine would tell it. Asks for one chunk at a time, and for none
 * while the listener is not ready.
 */
final class OtherAnswer extends BaseSubscriber<ChatResponse> implements GenerationHandle {
  private static final Timings UNKNOWN =
      new Timings(Duration.ZERO, Duration.ZERO, Duration.ZERO, Duration.ZERO);

  private final String id = "overflow-" + UUID.randomUUID();
  private final String model;
  private final GenerationListener listener;
  private final AtomicBoolean waiting = new AtomicBoolean();
  private final CountDownLatch done = new CountDownLatch(1);

  // On the other model's threads, one after the other.
  private String reasoning = "";
  private @Nullable String finishReason;
  private boolean calledTools;
  private Usage usage = new Usage(0, 0, 0, 0);

  private OtherAnswer(String model, GenerationListener listener) {
    this.model = model;
    this.listener = listener;
  }

  static GenerationHandle start(Overflow.Departure departure, GenerationListener listener) {
    OtherAnswer answer = new OtherAnswer(departure.bean(), listener);
    departure.stream().subscribe(answer);
    return answer;
  }

  @Override
  public String id() {
    return id;
  }

  @Override
  public void wake() {
    if (listener.isReady() && waiting.compareAndSet(true, false)) {
      request(1);
    }
  }

  @Override
  public boolean isDone() {
    return done.getCount() == 0;
  }

  @Override
  public void await() throws InterruptedException {
    done.await();
  }

  @Override
  protected void hookOnSubscribe(Subscription subscription) {
    askForMore();
  }

  @Override
  protected void hookOnNext(ChatResponse chunk) {
    List<ResponsePart> parts = parts(chunk);
    if (!parts.isEmpty()) {
      listener.onEvent(new GenerationEvent.Output(parts, List.of()));
    }
    askForMore();
  }

  private void askForMore() {
    waiting.set(true);
    wake();
  }

  @Override
  protected void hookOnComplete() {
    FinishReason reason = reason();
    listener.onEvent(
        reason == null
            ? failed("ended its answer by '%s'".formatted(finishReason), null)
            : new GenerationEvent.Completed(reason, usage, UNKNOWN));
  }

  @Override
  protected void hookOnError(Throwable failure) {
    listener.onEvent(
        failure instanceof OverflowFailedException own
            ? new GenerationEvent.Failed(own)
            : failed("failed: " + failure.getMessage(), failure));
  }

  @Override
  protected void hookFinally(SignalType type) {
    done.countDown();
  }

  private GenerationEvent failed(String what, @Nullable Throwable cause) {
    return new GenerationEvent.Failed(new OverflowFailedException(model, what, cause));
  }

  private List<ResponsePart> parts(ChatResponse chunk) {
    count(chunk.getMetadata().getUsage());
    Generation generation = chunk.getResult();
    if (generation == null) {
      return List.of();
    }
    String reason = generation.getMetadata().getFinishReason();
    if (reason != null && !reason.isEmpty()) {
      finishReason = reason;
    }
    AssistantMessage message = generation.getOutput();
    List<ResponsePart> parts = new ArrayList<>();
    String thought = newReasoning(message);
    if (!thought.isEmpty()) {
      parts.add(new ResponsePart.ReasoningText(thought));
    }
    String text = message.getText();
    if (text != null && !text.isEmpty()) {
      parts.add(new ResponsePart.AnswerText(text));
    }
    for (AssistantMessage.ToolCall call : message.getToolCalls()) {
      calledTools = true;
      parts.add(new ResponsePart.CalledTool(call(call)));
    }
    return parts;
  }

  /** The convention is that each chunk has all reasoning so far. */
  private String newReasoning(AssistantMessage message) {
    if (!(message.getMetadata().get(ChatResponseMapper.REASONING) instanceof String soFar)
        || soFar.length() <= reasoning.length()) {
      return "";
    }
    String added = soFar.substring(reasoning.length());
    reasoning = soFar;
    return added;
  }

  private ToolCall call(AssistantMessage.ToolCall call) {
    try {
      return new ToolCall(
          call.id(), call.name(), MessageMapper.object(call.arguments(), "arguments"));
    } catch (InvalidRequestException e) {
      throw new OverflowFailedException(
          model, "called '%s' with arguments that are no JSON object".formatted(call.name()), e);
    }
  }

  private void count(org.springframework.ai.chat.metadata.Usage counted) {
    if (counted.getTotalTokens() != null && counted.getTotalTokens() > 0) {
      Long cached = counted.getCacheReadInputTokens();
      usage =
          new Usage(
              counted.getPromptTokens(),
              counted.getCompletionTokens(),
              0,
              cached == null ? 0 : Math.toIntExact(cached));
    }
  }

  /** {@code null} if it is none that the engine knows. */
  private @Nullable FinishReason reason() {
    if (calledTools) {
      return FinishReason.TOOL_CALLS;
    }
    return switch (finishReason == null ? "stop" : finishReason.toLowerCase(Locale.ROOT)) {
      case "stop", "end_turn" -> FinishReason.STOP;
      case "length", "max_tokens" -> FinishReason.LENGTH;
      default -> null;
    };
  }
}
