package dev.lily.engine;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.chat.ContentPart;
import dev.lily.engine.chat.Conversation;
import dev.lily.engine.chat.Message;
import dev.lily.engine.chat.ToolDefinition;
import dev.lily.engine.generation.FinishReason;
import dev.lily.engine.generation.GenerationRequest;
import dev.lily.engine.generation.GenerationResult;
import dev.lily.engine.generation.RawPrompt;
import dev.lily.engine.generation.TokenLogprob;
import dev.lily.engine.sampling.SamplingOptions;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

/**
 * What of a prompt is read again, on the test model. Each answer is compared with one of an engine
 * without a cache: the same tokens, and log-probabilities equal to the last bit.
 */
class CachedAnswersTest {
  private static final String SYSTEM = "You are Lily, a small model. You answer briefly.";
  private static final String OPEN_ANSWER = "<|im_start|>assistant\n<think>\n\n</think>\n\n";
  private static final String OPEN_THOUGHT = "<|im_start|>assistant\n<think>\n";

  private static LilyEngine cold;
  private final LilyEngine warm = open(null);

  @BeforeAll
  static void openCold() {
    cold = open(0L);
  }

  @AfterAll
  static void closeCold() {
    cold.close();
    assertThat(cold.stats().cache()).isEqualTo(new EngineStats.Cache(0, 0, 0, 0, 0, 0));
    assertThat(cold.stats().cachedTokens()).isZero();
  }

  private static LilyEngine open(Long cacheBytes) {
    Path nano = Path.of(Objects.requireNonNull(System.getProperty("lily.nano.dir")));
    return LilyEngine.open(
        EngineOptions.builder(nano)
            .contextLength(4096)
            .maxSessions(2)
            .prefillChunk(256)
            .cacheBytes(cacheBytes)
            .build());
  }

  @AfterEach
  void close() {
    warm.close();
    assertThat(warm.stats().kvPagesUsed()).isZero();
  }

  private static GenerationRequest.Builder chat(List<Message> messages) {
    return GenerationRequest.builder(new Conversation(messages, List.of())).thinking(false);
  }

  private GenerationResult answer(GenerationRequest.Builder builder) {
    return answer(builder, 60);
  }

  private GenerationResult answer(GenerationRequest.Builder builder, int maxTokens) {
    GenerationRequest request =
        builder.sampling(SamplingOptions.GREEDY).maxTokens(maxTokens).topLogprobs(3).build();
    GenerationResult result = warm.generate(request);
    GenerationResult expected = cold.generate(request);
    assertThat(values(result)).isEqualTo(values(expected));
    assertThat(result.finishReason()).isEqualTo(expected.finishReason());
    assertThat(result.usage().promptTokens()).isEqualTo(expected.usage().promptTokens());
    return result;
  }

  private static List<List<Object>> values(GenerationResult result) {
    List<List<Object>> values = new ArrayList<>();
    for (TokenLogprob token : result.logprobs()) {
      List<Object> value = new ArrayList<>(List.of(token.id(), token.logprob()));
      token.top().forEach(top -> value.addAll(List.of(top.id(), top.logprob())));
      values.add(value);
    }
    return values;
  }

  private int tokens(String text) {
    return warm.tokenizer().encode(text).length;
  }

  private int userTokens(String text) {
    return tokens("<|im_start|>user\n" + text + "<|im_end|>\n");
  }

  private static int prompt(GenerationResult result) {
    return result.usage().promptTokens();
  }

  private static int cached(GenerationResult result) {
    return result.usage().cachedTokens();
  }

  private static List<Message> with(List<Message> messages, Message... more) {
    List<Message> all = new ArrayList<>(messages);
    all.addAll(Arrays.asList(more));
    return all;
  }

  private static List<Message> begin(String question) {
    return List.of(new Message.Instructions(SYSTEM), new Message.User(question));
  }

  @Test
  void aTurnReadsOnlyWhatCameSinceTheTurnBefore() {
    List<Message> messages = begin("What is the capital of France?");
    GenerationResult before = answer(chat(messages));
    assertThat(cached(before)).isZero();
    for (String question : List.of("And of Italy?", "Reply with the word fox.", "Thank you!")) {
      messages = with(messages, new Message.Assistant(before.text()), new Message.User(question));
      GenerationResult turn = answer(chat(messages));
      assertThat(cached(turn)).isEqualTo(prompt(before) - tokens(OPEN_ANSWER));
      before = turn;
    }
    EngineStats stats = warm.stats();
    assertThat(stats.cache().hits()).isEqualTo(3);
    assertThat(stats.cache().misses()).isEqualTo(1);
    assertThat(stats.cache().snapshots()).isPositive();
    assertThat(stats.cache().bytes()).isPositive().isLessThanOrEqualTo(stats.cache().maxBytes());
    assertThat(stats.cachedTokens()).isPositive();
  }

  @Test
  void theNextTurnIsFoundThoughTheReasoningIsLeftOut() {
    List<Message> messages = begin("What is the capital of France?");
    GenerationResult first = answer(chat(messages).thinking(true));
    GenerationResult second =
        answer(
            chat(with(
                    messages,
                    new Message.Assistant(
                        List.of(new ContentPart.Text(first.text())), first.reasoning(), List.of()),
                    new Message.User("And of Italy?")))
                .thinking(true));
    assertThat(cached(second)).isEqualTo(prompt(first) - tokens(OPEN_THOUGHT));
  }

  @Test
  void anEditedMessageIsReadFromItsBeginning() {
    List<Message> history =
        with(
            begin("What is the capital of France?"),
            new Message.Assistant("Paris."),
            new Message.User("And of Italy?"),
            new Message.Assistant("Rome."));
    answer(chat(with(history, new Message.User("Thank you!"))));
    GenerationResult last = answer(chat(with(history, new Message.User("Reply with fox."))));
    assertThat(prompt(last) - cached(last))
        .isEqualTo(userTokens("Reply with fox.") + tokens(OPEN_ANSWER));
    GenerationResult middle =
        answer(chat(with(history.subList(0, 3), new Message.User("And of Spain?"))));
    assertThat(prompt(middle) - cached(middle))
        .isEqualTo(userTokens("And of Spain?") + tokens(OPEN_ANSWER));
  }

  @Test
  void aRegeneratedAnswerReadsOnlyItsOwnBeginning() {
    GenerationResult first = answer(chat(begin("What is the capital of France?")));
    GenerationResult again = answer(chat(begin("What is the capital of France?")));
    assertThat(again.text()).isEqualTo(first.text());
    assertThat(prompt(again) - cached(again)).isEqualTo(tokens(OPEN_ANSWER));
  }

  @Test
  void usersShareTheSystemPrompt() {
    answer(chat(begin("What is the capital of France?")));
    int shared = tokens("<|im_start|>system\n" + SYSTEM + "<|im_end|>\n");
    for (String question : List.of("Reply with the word fox.", "Who are you?", "Add 2 and 3.")) {
      assertThat(cached(answer(chat(begin(question))))).isEqualTo(shared);
    }
  }

  @Test
  void thinkingSwitchedOffAndOnReadsOnlyTheBeginningOfTheAnswer() {
    List<Message> messages = begin("What is the capital of France?");
    answer(chat(messages));
    GenerationResult on = answer(chat(messages).thinking(true));
    assertThat(prompt(on) - cached(on)).isEqualTo(tokens(OPEN_THOUGHT));
    GenerationResult off = answer(chat(messages));
    assertThat(prompt(off) - cached(off)).isEqualTo(tokens(OPEN_ANSWER));
  }

  private static ToolDefinition weather() {
    ObjectNode parameters =
        (ObjectNode)
            JsonMapper.shared()
                .readTree(
                    """
                    {"type": "object", "properties": {"city": {"type": "string", "description": "The city"}},
                     "required": ["city"]}""");
    return ToolDefinition.of("get_weather", "Get the weather in a given city.", parameters);
  }

  @Test
  void toolsBehindACacheHitAreCalledAsOnesThatWereRead() {
    List<ToolDefinition> tools = new ArrayList<>(List.of(weather()));
    for (int i = 1; i < 20; i++) {
      tools.add(ToolDefinition.of("tool_" + i, "Does thing " + i + ".", weather().parameters()));
    }
    List<String> cities = new ArrayList<>();
    for (String city : List.of("Rome", "Cairo", "Oslo")) {
      GenerationResult call =
          answer(
              chat(List.of(
                      new Message.Instructions("You are a helpful assistant with tools."),
                      new Message.User("What is the weather in " + city + "?")))
                  .tools(tools)
                  .thinking(true));
      assertThat(call.finishReason()).isEqualTo(FinishReason.TOOL_CALLS);
      cities.add(call.toolCalls().getFirst().arguments().path("city").asString());
      assertThat(prompt(call) - cached(call) < 40).isEqualTo(cities.size() > 1);
    }
    assertThat(cities).containsExactly("Rome", "Cairo", "Oslo");
  }

  @Test
  void aToolLoopReadsOnlyTheResult() {
    List<ToolDefinition> tools = List.of(weather());
    List<Message> messages =
        List.of(
            new Message.Instructions("You are a helpful assistant with tools."),
            new Message.User("What is the weather in Rome?"));
    GenerationResult call = answer(chat(messages).tools(tools).thinking(true));
    assertThat(call.finishReason()).isEqualTo(FinishReason.TOOL_CALLS);
    GenerationResult answer =
        answer(
            chat(with(
                    messages,
                    new Message.Assistant(
                        List.of(new ContentPart.Text(call.text())),
                        call.reasoning(),
                        call.toolCalls()),
                    new Message.ToolResult("sunny, 25 degrees")))
                .tools(tools)
                .thinking(true));
    assertThat(cached(answer)).isEqualTo(prompt(call) + call.usage().completionTokens() - 1);
  }

  @Test
  void aRawPromptGoesOnAfterItsAnswer() {
    GenerationResult first =
        answer(GenerationRequest.builder(new RawPrompt.Text("The capital of France is")));
    GenerationResult again =
        answer(GenerationRequest.builder(new RawPrompt.Text("The capital of France is")));
    assertThat(cached(again)).isEqualTo(prompt(first) - 1);
    List<Integer> longer = new ArrayList<>();
    for (int id : warm.tokenizer().encode("The capital of France is")) {
      longer.add(id);
    }
    first.logprobs().forEach(token -> longer.add(token.id()));
    longer.add(17);
    GenerationResult onward = answer(GenerationRequest.builder(new RawPrompt.Tokens(longer)));
    assertThat(prompt(onward) - cached(onward)).isEqualTo(2);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 31, 32, 33, 63, 64, 65, 2047, 2048, 2049})
  void aPartlyMatchingPromptIsReadFromTheNearestStateBeforeItsFirstDifference(int shared) {
    Random random = new Random(shared);
    List<Integer> p = random.ints(shared, 256, 900).boxed().toList();
    List<Integer> x = random.ints(20, 256, 900).boxed().toList();
    List<Integer> y = random.ints(20, 900, 1500).boxed().toList();
    assertThat(cached(answer(raw(List.of(p, x)), 3))).isZero();
    assertThat(cached(answer(raw(List.of(p, y)), 3))).isLessThanOrEqualTo(shared);
    assertThat(cached(answer(raw(List.of(p)), 3))).isLessThan(shared);
    assertThat(cached(answer(raw(List.of(p, y, x)), 3))).isEqualTo(shared + 19);
    assertThat(cached(answer(raw(List.of(p, x, y)), 3))).isEqualTo(shared + 19);
  }

  private static GenerationRequest.Builder raw(List<List<Integer>> parts) {
    return GenerationRequest.builder(
        new RawPrompt.Tokens(parts.stream().flatMap(List::stream).toList()));
  }
}
