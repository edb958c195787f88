package dev.lily.spring;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.springframework.ai.chat.messages.AssistantMessage;
import org.springframework.ai.chat.metadata.ChatGenerationMetadata;
import org.springframework.ai.chat.metadata.ChatResponseMetadata;
import org.springframework.ai.chat.metadata.DefaultUsage;
import org.springframework.ai.chat.model.ChatModel;
import org.springframework.ai.chat.model.ChatResponse;
import org.springframework.ai.chat.model.Generation;
import org.springframework.ai.chat.prompt.ChatOptions;
import org.springframework.ai.chat.prompt.Prompt;
import org.springframework.ai.model.tool.ToolCallingChatOptions;
import reactor.core.publisher.Flux;

/**
 * Another provider's chat model, which says what it is told to, and remembers what it was asked.
 */
public final class ScriptedChatModel implements ChatModel {
  public static final String MODEL = "big-model";

  public final List<Prompt> prompts = new CopyOnWriteArrayList<>();
  public final AtomicInteger cancellations = new AtomicInteger();
  private final ChatOptions options;
  private final Supplier<Flux<ChatResponse>> script;

  private ScriptedChatModel(ChatOptions options, Supplier<Flux<ChatResponse>> script) {
    this.options = options;
    this.script = script;
  }

  /** A model with tools. */
  public static ScriptedChatModel streaming(Flux<ChatResponse> answer) {
    return of(ToolCallingChatOptions.builder().model(MODEL).build(), answer);
  }

  public static ScriptedChatModel of(ChatOptions options, Flux<ChatResponse> answer) {
    return new ScriptedChatModel(options, () -> answer);
  }

  /** A model that says these words, and then stops. */
  public static ScriptedChatModel saying(String... words) {
    List<ChatResponse> chunks = new ArrayList<>();
    for (String word : words) {
      chunks.add(text(word));
    }
    chunks.add(end("STOP", 4, 3));
    return streaming(Flux.fromIterable(chunks));
  }

  public static ChatResponse text(String text) {
    return chunk(AssistantMessage.builder().content(text).build());
  }

  public static ChatResponse chunk(AssistantMessage message) {
    return new ChatResponse(
        List.of(new Generation(message)), ChatResponseMetadata.builder().model(MODEL).build());
  }

  public static ChatResponse end(String finishReason, int promptTokens, int completionTokens) {
    return new ChatResponse(
        List.of(
            new Generation(
                new AssistantMessage(""),
                ChatGenerationMetadata.builder().finishReason(finishReason).build())),
        ChatResponseMetadata.builder()
            .model(MODEL)
            .usage(new DefaultUsage(promptTokens, completionTokens))
            .build());
  }

  @Override
  public ChatOptions getOptions() {
    return options;
  }

  /** The stream's text in one piece. */
  @Override
  public ChatResponse call(Prompt prompt) {
    StringBuilder text = new StringBuilder();
    stream(prompt)
        .doOnNext(chunk -> text.append(chunk.getResult().getOutput().getText()))
        .blockLast();
    return text(text.toString());
  }

  @Override
  public Flux<ChatResponse> stream(Prompt prompt) {
    prompts.add(prompt);
    return script.get().doOnCancel(cancellations::incrementAndGet);
  }
}
