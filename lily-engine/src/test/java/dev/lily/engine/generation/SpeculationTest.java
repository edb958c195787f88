package dev.lily.engine.generation;

import static dev.lily.engine.generation.ManualScheduler.answer;
import static dev.lily.engine.generation.ManualScheduler.prompt;
import static dev.lily.engine.generation.ManualScheduler.saying;
import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.chat.Conversation;
import dev.lily.engine.chat.Message;
import dev.lily.engine.constraint.OutputConstraint;
import dev.lily.engine.model.ScriptedModel;
import dev.lily.engine.model.ScriptedModel.Rows;
import dev.lily.engine.model.ScriptedModel.Script;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * What drafts do to passes. The clock stands still, so that a row costs a token: one session's
 * grant of three affords a first draft of two, and drafts that are right pay for themselves.
 */
class SpeculationTest {
  private static final String STORY = "Once upon a time there was a fox who lived in the woods";
  private static final int[] TOLD = answer(STORY);

  /** Drafts what it is told for each place in the answer; nothing elsewhere. */
  private static final class Drafter implements DraftSource {
    private final int[][] drafts;
    private int size;

    Drafter(int[][] drafts) {
      this.drafts = drafts;
    }

    @Override
    public void add(int token) {
      size++;
    }

    @Override
    public int draft(int[] target, int at, int most) {
      int[] draft = drafts[size];
      int count = draft == null ? 0 : Math.min(most, draft.length);
      System.arraycopy(draft == null ? TOLD : draft, 0, target, at, count);
      return count;
    }
  }

  private static ManualScheduler scheduler(
      ScriptedModel.Builder model, Function<int[], DraftSource> drafts) {
    return scheduler(model, PrefixCacheOptions.OFF, drafts);
  }

  private static ManualScheduler scheduler(
      ScriptedModel.Builder model, PrefixCacheOptions cache, Function<int[], DraftSource> drafts) {
    return new ManualScheduler(
        model.draftTokens(4).build(),
        new SchedulerOptions(
            8,
            64,
            64,
            4096,
            Duration.ofSeconds(60),
            cache,
            null,
            new SpeculationOptions(SpeculationOptions.Mode.PROMPT_LOOKUP, 4),
            SchedulerOptions.DEFAULT_MAX_STEP_TIME),
        drafts);
  }

  /** Drafts of these tokens behind {@code after} tokens of the answer. */
  private static Function<int[], DraftSource> drafting(int after, int... tokens) {
    int[][] drafts = new int[100][];
    drafts[after] = tokens;
    return _ -> new Drafter(drafts);
  }

  private static List<Integer> rows(ManualScheduler s) {
    return s.steps().stream().map(step -> step.getFirst().count()).toList();
  }

  private static int[] told(int from, int count) {
    return Arrays.copyOfRange(TOLD, from, from + count);
  }

  @Test
  void copiesFromThePromptSeveralTokensAtATime() {
    int[] prompt = Arrays.copyOf(TOLD, TOLD.length - 1);
    ManualScheduler s = scheduler(saying(STORY), PromptLookup::new);
    Recorder r = s.submit(prompt, b -> b.topLogprobs(0));
    s.finish();
    assertThat(r.text()).isEqualTo(STORY);
    assertThat(r.logprobs()).hasSize(TOLD.length);
    assertThat(r.completed().usage().completionTokens()).isEqualTo(TOLD.length);
    // The prompt, passes until their time is known, then a draft of two and one of four tokens.
    assertThat(rows(s)).containsExactly(prompt.length, 1, 1, 1, 1, 3, 5, 5);
    Counters counters = s.scheduler().counters();
    assertThat(counters.generatedTokens()).isEqualTo(TOLD.length);
    assertThat(counters.acceptedTokens()).isEqualTo(7);
    assertThat(counters.draftedTokens())
        .as("behind the last word comes the end, not what came behind it in the prompt")
        .isEqualTo(10);
    assertThat(counters.steps()).isEqualTo(TOLD.length - counters.acceptedTokens());
  }

  @Test
  void readsAgainOnlyWhatWasRight() {
    ManualScheduler s = scheduler(saying(STORY), drafting(5, TOLD[5], 1));
    Recorder r = s.submit(prompt(1, 3), b -> b);
    s.finish();
    assertThat(r.text()).isEqualTo(STORY);
    assertThat(s.steps().get(5)).containsExactly(new Rows(0, 3 + 4, 3, true, false));
    // The token before the draft, the one that was right, and the one that came instead.
    assertThat(s.steps().get(6)).containsExactly(new Rows(1, 3 + 4, 3, true, false));
    assertThat(s.steps().get(7)).containsExactly(new Rows(1, 3 + 7, 1, true, true));
    assertThat(s.model().device().calls())
        .contains("copySlot 0 1", "rewindSampling 0 3 2")
        .doesNotContain("copySlot 1 0");
    assertThat(s.scheduler().counters().draftedTokens()).isEqualTo(2);
    assertThat(s.scheduler().counters().acceptedTokens()).isEqualTo(1);
  }

  @Test
  void draftsAgainBehindTokensThatAreReadAgain() {
    int[][] drafts = new int[100][];
    drafts[5] = new int[] {1};
    drafts[6] = new int[] {TOLD[6]};
    ManualScheduler s = scheduler(saying(STORY), _ -> new Drafter(drafts));
    Recorder r = s.submit(prompt(1, 3), b -> b);
    s.finish();
    assertThat(r.text()).isEqualTo(STORY);
    assertThat(rows(s).subList(0, 9)).containsExactly(3, 1, 1, 1, 1, 2, 2, 1, 1);
    assertThat(s.scheduler().counters().draftedTokens())
        .as("a wrong row and its replay leave nothing for another")
        .isEqualTo(1);
  }

  @Test
  void endsInsideADraftWhereTheAnswerEnds() {
    int last = TOLD.length - 1;
    ManualScheduler s = scheduler(saying(STORY), drafting(last, 77, 78));
    Recorder r = s.submit(prompt(1, 3), b -> b.topLogprobs(0));
    s.finish();
    assertThat(r.text()).isEqualTo(STORY);
    assertThat(r.completed().reason()).isEqualTo(FinishReason.STOP);
    assertThat(r.completed().usage().completionTokens()).isEqualTo(TOLD.length);
    assertThat(r.logprobs().getLast().id()).isEqualTo(Nano.END);
    assertThat(s.steps().getLast()).extracting(Rows::count).containsExactly(3);
  }

  @Test
  void draftsNoEndToken() {
    int last = TOLD.length - 1;
    ManualScheduler s = scheduler(saying(STORY), drafting(last - 1, TOLD[last - 1], Nano.END));
    Recorder r = s.submit(prompt(1, 3), b -> b);
    s.finish();
    assertThat(r.text()).isEqualTo(STORY);
    assertThat(s.steps().getLast()).extracting(Rows::count).containsExactly(2);
  }

  @Test
  void endsAtAStopTextInsideADraft() {
    ManualScheduler s = scheduler(saying(STORY), drafting(5, told(5, 3)));
    Recorder r = s.submit(prompt(1, 3), b -> b.stopStrings(List.of("there")));
    s.finish();
    assertThat(r.text()).isEqualTo("Once upon a time ");
    assertThat(r.completed().reason()).isEqualTo(FinishReason.STOP);
  }

  @ParameterizedTest
  @ValueSource(ints = {6, 7, 8})
  void draftsNoMoreThanTheTokenLimitLeaves(int maxTokens) {
    // Pages for the prompt and the answer, and not one more.
    ManualScheduler s =
        scheduler(saying(STORY).maxSequences(1).pages(3 + maxTokens, 1), drafting(5, told(5, 4)));
    Recorder r = s.submit(prompt(1, 3), b -> b.maxTokens(maxTokens).topLogprobs(0));
    s.finish();
    assertThat(r.completed().reason()).isEqualTo(FinishReason.LENGTH);
    assertThat(r.logprobs()).hasSize(maxTokens);
    assertThat(s.steps().getLast())
        .extracting(Rows::count)
        .containsExactly(Math.min(3, maxTokens - 5));
  }

  @Test
  void draftsNotAcrossTheTokenAtWhichTheAnswerMayEnd() {
    Script ending = Script.saying(TOLD[0], TOLD[1], TOLD[2], TOLD[3], TOLD[4], Nano.END);
    ManualScheduler s =
        scheduler(ManualScheduler.model(ending), drafting(5, 0, Nano.END, Nano.END));
    Recorder r = s.submit(prompt(1, 3), b -> b.minTokens(7).topLogprobs(0));
    s.finish();
    // Where the end is forbidden the script says the lowest token.
    assertThat(r.logprobs())
        .extracting(TokenLogprob::id)
        .containsExactly(TOLD[0], TOLD[1], TOLD[2], TOLD[3], TOLD[4], 0, 0, Nano.END);
    assertThat(rows(s)).containsExactly(3, 1, 1, 1, 1, 2, 1);
  }

  @Test
  void constrainedAnswersAreNotDrafted() {
    ManualScheduler s =
        scheduler(
            saying("yes"),
            prompt -> {
              throw new AssertionError("a source was asked for");
            });
    Recorder r = new Recorder();
    AnswerConstraints constraints =
        new AnswerConstraints(
            Nano.TOKENIZER, Nano.TOKENIZER.vocabularySize(), new int[] {Nano.END});
    GenerationRequest request =
        GenerationRequest.builder(Conversation.of(new Message.User("x")))
            .output(new OutputConstraint.Choice(List.of("yes", "no")))
            .build();
    r.submittedAs(
        s.scheduler()
            .submit(
                request,
                new EncodedPrompt(prompt(1, 3), false),
                ManualScheduler.GREEDY,
                constraints.of(request, false),
                r));
    s.finish();
    assertThat(r.text()).isEqualTo("yes");
  }

  @Test
  void runsAheadOfTheDeviceUntilADraftSuggestsItself() {
    ManualScheduler s = scheduler(saying(STORY).maxPassesInFlight(2), drafting(9, told(9, 2)));
    Recorder r = s.submit(prompt(1, 3), b -> b);
    s.turns(2);
    assertThat(s.steps()).as("submitted before the first token was read").hasSize(2);
    s.finish();
    assertThat(r.text()).isEqualTo(STORY);
    // Behind nine tokens, of which the last was on the way, two rows were submitted before.
    assertThat(s.scheduler().counters().draftedTokens()).isZero();
    assertThat(rows(s)).containsOnly(3, 1);
  }

  @Test
  void waitsForATokenBehindWhichADraftSuggestsItself() {
    int[][] drafts = new int[100][];
    drafts[9] = told(9, 2);
    drafts[10] = told(10, 2);
    ManualScheduler s = scheduler(saying(STORY).maxPassesInFlight(2), _ -> new Drafter(drafts));
    Recorder r = s.submit(prompt(1, 3), b -> b);
    s.finish();
    assertThat(r.text()).isEqualTo(STORY);
    assertThat(s.scheduler().counters().acceptedTokens()).isEqualTo(2);
    assertThat(rows(s).subList(8, 12)).containsExactly(1, 1, 3, 1);
  }

  /** Drafts of one token, each of them right, on a device that works ahead. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void paysForPassesThatOthersHaveMeanwhile(boolean beside) {
    int[] answer = new int[400];
    Arrays.setAll(answer, i -> 300 + i * 7 % 997);
    int[][] drafts = new int[401][];
    Arrays.setAll(drafts, i -> i < 399 ? new int[] {answer[i]} : null);
    ManualScheduler s =
        scheduler(
            ManualScheduler.model(Script.saying(answer)).maxPassesInFlight(2),
            prompt -> new Drafter(prompt[0] == 1 ? drafts : new int[401][]));
    Recorder r = s.submit(prompt(1, 3), b -> b.maxTokens(200));
    if (beside) {
      s.submit(prompt(2, 3), b -> b.maxTokens(400));
    }
    s.finish();
    assertThat(r.completed().usage().completionTokens()).isEqualTo(200);
    Counters counters = s.scheduler().counters();
    assertThat(counters.acceptedTokens()).isEqualTo(counters.draftedTokens());
    if (beside) {
      assertThat(counters.acceptedTokens()).isBetween(1L, 10L);
    } else {
      assertThat(counters.acceptedTokens()).isGreaterThan(12);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void cancellingBetweenTokensOfADraftKeepsTheRestBack(int depth) {
    ManualScheduler s = scheduler(saying(STORY).maxPassesInFlight(depth), drafting(5, told(5, 2)));
    List<Recorder> recorders = new ArrayList<>();
    Recorder r =
        new Recorder(
            event -> {
              if (event instanceof GenerationEvent.Output output
                  && recorders.getFirst().logprobs().size() == 6) {
                recorders.getFirst().handle().cancel();
              }
            });
    recorders.add(r);
    s.submit(prompt(1, 3), false, b -> b.topLogprobs(0), r);
    s.finish();
    assertThat(r.completed().reason()).isEqualTo(FinishReason.CANCELLED);
    assertThat(r.logprobs()).hasSize(6);
  }

  @Test
  void aPassThatFailsWithADraftFailsItsSessionsOnly() {
    ManualScheduler s = scheduler(saying(STORY), drafting(5, told(5, 2)));
    s.model().failPass(5);
    Recorder first = s.submit(prompt(1, 3), b -> b);
    s.turns(7);
    Recorder second = s.submit(prompt(2, 3), b -> b);
    s.finish();
    assertThat(first.failure()).isInstanceOf(DeviceFailureException.class);
    assertThat(second.text()).isEqualTo(STORY);
  }

  @Test
  void wrongDraftsSoonAreNotTriedAnyMore() {
    int[] answer = new int[1000];
    Arrays.setAll(answer, i -> 300 + i * 7 % 997);
    int[][] drafts = new int[1001][];
    Arrays.fill(drafts, new int[] {1, 1, 1, 1});
    ManualScheduler s =
        scheduler(ManualScheduler.model(Script.saying(answer)), _ -> new Drafter(drafts));
    Recorder r = s.submit(prompt(1, 3), b -> b.maxTokens(1000).topLogprobs(0));
    s.finish();
    assertThat(r.logprobs())
        .extracting(TokenLogprob::id)
        .containsExactly(Arrays.stream(answer).boxed().toArray(Integer[]::new));
    assertThat(s.scheduler().counters().acceptedTokens()).isZero();
    int further = rows(s).stream().mapToInt(Integer::intValue).sum() - 3 - 999;
    assertThat(further).as("rows that cost a token each").isBetween(10, 3 + 20);
    assertThat(s.steps()).as("passes, one a token").hasSize(1000);
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void anAnswerLeavesAStateOfItsTokensInTheCache(boolean right) {
    int last = TOLD.length - 1;
    ManualScheduler s =
        scheduler(
            saying(STORY).snapshots(8),
            new PrefixCacheOptions(1 << 20, 1, 1, 0, false),
            drafting(last - 1, TOLD[last - 1], right ? Nano.END : 77));
    Recorder r = s.submit(prompt(1, 3), SpeculationTest::raw);
    s.runUntilIdle();
    assertThat(r.completed().reason()).isEqualTo(FinishReason.STOP);
    int[] onward = Arrays.copyOf(prompt(1, 3), 3 + TOLD.length + 2);
    System.arraycopy(TOLD, 0, onward, 3, TOLD.length);
    Recorder next = s.submit(onward, SpeculationTest::raw);
    s.runUntilIdle();
    // That of all but the last as without drafts, or that before a draft which was too long.
    assertThat(next.completed().usage().cachedTokens()).isEqualTo(3 + last - (right ? 0 : 2));
  }

  private static GenerationRequest.Builder raw(GenerationRequest.Builder ignored) {
    return GenerationRequest.builder(new RawPrompt.Text("x"));
  }
}
