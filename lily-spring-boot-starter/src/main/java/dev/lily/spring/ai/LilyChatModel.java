package dev.lily.spring.ai;

import dev.lily.engine.LilyEngine;
import dev.lily.engine.generation.GenerationResult;
import dev.lily.spring.AnswerRecorder;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationRegistry;
import io.micrometer.observation.contextpropagation.ObservationThreadLocalAccessor;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.springframework.ai.chat.model.ChatModel;
import org.springframework.ai.chat.model.ChatResponse;
import org.springframework.ai.chat.observation.ChatModelObservationContext;
import org.springframework.ai.chat.observation.ChatModelObservationConvention;
import org.springframework.ai.chat.observation.ChatModelObservationDocumentation;
import org.springframework.ai.chat.observation.DefaultChatModelObservationConvention;
import org.springframework.ai.chat.prompt.ChatOptions;
import org.springframework.ai.chat.prompt.Prompt;
import org.springframework.util.Assert;
import reactor.core.publisher.Flux;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

/**
 * Spring AI's chat model on a {@link LilyEngine} in this process. Thread-safe; does not own the
 * engine.
 *
 * <p><b>Options.</b> A prompt without options uses this model's; {@link LilyChatOptions} are used
 * alone, and what they leave unsaid falls to the engine's defaults; any other {@link ChatOptions}
 * are laid over this model's. A model name other than the loaded one, media and an output schema
 * that cannot be enforced are refused with an {@link
 * dev.lily.engine.generation.InvalidRequestException}.
 *
 * <p><b>Answers.</b> Reasoning is in the message metadata under {@code reasoningContent}, whole so
 * far in each chunk of a stream, and never in the text. Tool calls are returned, not executed; in a
 * stream they come in the last chunk, together with finish reason ({@code stop}, {@code length},
 * {@code tool_calls}) and usage. The native usage is the engine's {@link
 * dev.lily.engine.generation.Usage}. Response metadata has the timings {@code queuedTime}, {@code
 * prefillTime}, {@code timeToFirstToken} and {@code decodeTime}.
 *
 * <p><b>Errors.</b> Every {@link dev.lily.engine.generation.GenerationException} of the engine
 * reaches the caller as it is. Nothing is retried.
 *
 * <p>Not final, so that an application can put advice around the bean.
 */
public class LilyChatModel implements ChatModel {

  /** Provider name in observations and in {@code spring.ai.model.chat}. */
  public static final String PROVIDER = "lily";

  private static final ChatModelObservationConvention DEFAULT_CONVENTION =
      new DefaultChatModelObservationConvention();

  private final LilyEngine engine;
  private final LilyChatOptions options;
  private final ObservationRegistry observations;
  private final AnswerRecorder recorder;
  private final Scheduler scheduler;
  private final PromptMapper prompts;
  private final ChatResponseMapper responses;
  private volatile ChatModelObservationConvention convention = DEFAULT_CONVENTION;

  private LilyChatModel(Builder builder) {
    engine = builder.engine;
    String modelName = engine.model().name();
    options = named(builder.options, modelName);
    observations = builder.observations;
    recorder = builder.recorder;
    scheduler = builder.scheduler;
    prompts = new PromptMapper(modelName);
    responses = new ChatResponseMapper(modelName);
  }

  public static Builder builder(LilyEngine engine) {
    return new Builder(engine);
  }

  /** Names and tags observations; the default is Spring AI's. */
  public void setObservationConvention(ChatModelObservationConvention convention) {
    Assert.notNull(convention, "convention must not be null");
    this.convention = convention;
  }

  /** This model's defaults, with the loaded model's name. */
  @Override
  public LilyChatOptions getOptions() {
    return options;
  }

  /**
   * Waits for the whole answer. Interrupting the thread cancels the request.
   *
   * @throws IllegalStateException on a thread that must not block, such as an event loop's
   */
  @Override
  public ChatResponse call(Prompt prompt) {
    Assert.notNull(prompt, "prompt must not be null");
    if (Schedulers.isInNonBlockingThread()) {
      throw new IllegalStateException(
          "LilyChatModel.call() waits for the answer, but thread '%s' must not block. Use stream(), or move the call to Schedulers.boundedElastic()."
              .formatted(Thread.currentThread().getName()));
    }
    LilyChatOptions asked = resolve(prompt);
    Prompt resolved = prompt.mutate().chatOptions(asked).build();
    ChatModelObservationContext context = context(resolved, false);
    return observation(context)
        .<ChatResponse>observe(
            () -> {
              GenerationResult result =
                  engine.generate(prompts.request(resolved.getInstructions(), asked));
              return record(newId(), result, context);
            });
  }

  /**
   * The answer piece by piece. Nothing happens before subscription, each subscription is a request
   * of its own, and cancelling it stops the engine's work on it. Chunks come on a scheduler thread.
   * A subscriber that takes nothing pauses its own session only; about {@value
   * AnswerStream#PREFETCH} chunks wait for it, and after {@code lily.stall-timeout} its stream ends
   * with an error.
   */
  @Override
  public Flux<ChatResponse> stream(Prompt prompt) {
    Assert.notNull(prompt, "prompt must not be null");
    return Flux.deferContextual(
        view -> {
          LilyChatOptions asked = resolve(prompt);
          Prompt resolved = prompt.mutate().chatOptions(asked).build();
          ChatModelObservationContext context = context(resolved, true);
          Observation observation = observation(context);
          start(observation, view.getOrDefault(ObservationThreadLocalAccessor.KEY, null));
          AtomicBoolean stopped = new AtomicBoolean();
          Runnable stop =
              () -> {
                if (stopped.compareAndSet(false, true)) {
                  observation.stop();
                }
              };
          String id = newId();
          return AnswerStream.of(
                  listener ->
                      engine.submit(prompts.request(resolved.getInstructions(), asked), listener),
                  responses,
                  id,
                  result -> record(id, result, context),
                  scheduler)
              .doOnError(observation::error)
              // Not doFinally: that would stop it after the subscriber has seen the end.
              .doOnTerminate(stop)
              .doOnCancel(stop)
              .contextWrite(c -> c.put(ObservationThreadLocalAccessor.KEY, observation));
        });
  }

  private ChatResponse record(
      String id, GenerationResult result, ChatModelObservationContext context) {
    ChatResponse response = responses.response(id, result);
    context.setResponse(response);
    recorder.record(result.usage(), result.timings());
    return response;
  }

  private LilyChatOptions resolve(Prompt prompt) {
    return named(LilyChatOptions.resolve(prompt.getOptions(), options), engine.model().name());
  }

  private static LilyChatOptions named(LilyChatOptions options, String modelName) {
    return options.getModel() == null ? options.mutate().model(modelName).build() : options;
  }

  /** No secret: drawing one would read from the system, and this may be an event loop. */
  private static String newId() {
    ThreadLocalRandom random = ThreadLocalRandom.current();
    return "lily-" + new UUID(random.nextLong(), random.nextLong());
  }

  private static ChatModelObservationContext context(Prompt prompt, boolean streaming) {
    return ChatModelObservationContext.builder()
        .prompt(prompt)
        .provider(PROVIDER)
        .streaming(streaming)
        .build();
  }

  private Observation observation(ChatModelObservationContext context) {
    return ChatModelObservationDocumentation.CHAT_MODEL_OPERATION.observation(
        convention, DEFAULT_CONVENTION, () -> context, observations);
  }

  private static void start(Observation observation, @Nullable Observation parent) {
    if (parent == null) {
      observation.start();
      return;
    }
    observation.parentObservation(parent);
    parent.scoped(
        () -> {
          observation.start();
        });
  }

  /** Collects what a chat model needs; only the engine is required. */
  public static final class Builder {
    private final LilyEngine engine;
    private LilyChatOptions options = LilyChatOptions.builder().build();
    private ObservationRegistry observations = ObservationRegistry.NOOP;
    private AnswerRecorder recorder = AnswerRecorder.NONE;
    private Scheduler scheduler = Schedulers.boundedElastic();

    private Builder(LilyEngine engine) {
      Assert.notNull(engine, "engine must not be null");
      this.engine = engine;
    }

    /** Options of prompts that have none. */
    public Builder options(LilyChatOptions value) {
      Assert.notNull(value, "options must not be null");
      options = value;
      return this;
    }

    public Builder observationRegistry(ObservationRegistry value) {
      Assert.notNull(value, "observationRegistry must not be null");
      observations = value;
      return this;
    }

    /** Takes usage and timings of each answer. */
    public Builder recorder(AnswerRecorder value) {
      Assert.notNull(value, "recorder must not be null");
      recorder = value;
      return this;
    }

    /**
     * Where streams prepare their request and give out chunks; the default is Reactor's
     * boundedElastic.
     */
    public Builder scheduler(Scheduler value) {
      Assert.notNull(value, "scheduler must not be null");
      scheduler = value;
      return this;
    }

    public LilyChatModel build() {
      return new LilyChatModel(this);
    }
  }
}
