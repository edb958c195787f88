package dev.lily.spring.openai;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.lily.engine.chat.ContentPart;
import dev.lily.engine.chat.Conversation;
import dev.lily.engine.chat.Message;
import dev.lily.engine.constraint.OutputConstraint;
import dev.lily.engine.generation.GenerationRequest;
import dev.lily.engine.generation.ToolChoice;
import dev.lily.engine.sampling.SamplingOptions;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import tools.jackson.databind.node.ObjectNode;

class CompletionRequestMapperTest {
  private static final String HI = "'messages':[{'role':'user','content':'hi'}]";
  private static final String TOOLS =
      "'tools':[{'type':'function','function':{'name':'now','parameters':{'type':'object'}}}]";

  private static CompletionRequest map(String fields) {
    return map(fields, OpenAiOptions.builder().build());
  }

  private static CompletionRequest map(String fields, OpenAiOptions options) {
    String separator = fields.isEmpty() ? "" : ",";
    return new CompletionRequestMapper("nano", options)
        .map(FieldReader.of(Json.object("{" + HI + separator + fields + "}")));
  }

  private static GenerationRequest one(String fields) {
    CompletionRequest request = map(fields);
    assertThat(request.choices()).hasSize(1);
    return request.choices().getFirst();
  }

  private static ApiError refusal(ObjectNode body) {
    Throwable thrown =
        catchThrowable(
            () ->
                new CompletionRequestMapper("nano", OpenAiOptions.builder().build())
                    .map(FieldReader.of(body)));
    assertThat(thrown).isNotNull();
    return ErrorMapper.map(thrown);
  }

  private static ApiError refusal(String fields) {
    return refusal(Json.object("{" + HI + "," + fields + "}"));
  }

  @Test
  void leavesUnsaidWhatTheBodyDoesNotSay() {
    CompletionRequest request = map("");
    assertThat(request.choices()).containsExactly(GenerationRequest.of("hi"));
    assertThat(request.stream()).isFalse();
    assertThat(request.includeUsage()).isFalse();
    assertThat(request.logprobs()).isFalse();
  }

  @Test
  void readsNullAsUnsaid() {
    assertThat(
            map(
                """
                'model':null,'stream':null,'stream_options':null,'temperature':null,'top_p':null,
                'top_k':null,'min_p':null,'presence_penalty':null,'frequency_penalty':null,
                'repetition_penalty':null,'seed':null,'logit_bias':null,'logprobs':null,
                'top_logprobs':null,'max_tokens':null,'max_completion_tokens':null,
                'min_tokens':null,'n':null,'stop':null,'tools':null,'tool_choice':null,
                'parallel_tool_calls':null,'response_format':null,'reasoning_effort':null,
                'chat_template_kwargs':null,'functions':null,'modalities':null"""))
        .isEqualTo(map(""));
  }

  @Test
  void ignoresWhatDoesNotChangeTheAnswer() {
    assertThat(
            map(
                """
                'user':'u','metadata':{'a':'b'},'store':true,'service_tier':'auto',
                'prompt_cache_key':'k','no_such_field':[1]"""))
        .isEqualTo(map(""));
  }

  @Test
  void mapsEveryField() {
    assertThat(
            map(
                """
                'model':'nano','stream':true,'stream_options':{'include_usage':true},
                'temperature':0.5,'top_p':0.9,'top_k':40,'min_p':0.05,'presence_penalty':0.1,
                'frequency_penalty':-0.2,'repetition_penalty':1.1,'seed':-3,
                'logit_bias':{'5':-100,'17':2.5},'logprobs':true,'top_logprobs':3,'max_tokens':20,
                'min_tokens':2,'stop':['a','b','c','d'],'parallel_tool_calls':true,
                'response_format':{'type':'text'},'modalities':['text'],
                'chat_template_kwargs':{'enable_thinking':false,'preserve_thinking':true}"""))
        .isEqualTo(
            new CompletionRequest(
                List.of(
                    GenerationRequest.builder(Conversation.of(new Message.User("hi")))
                        .thinking(false)
                        .preserveThinking(true)
                        .sampling(
                            new SamplingOptions(
                                0.5,
                                40,
                                0.9,
                                0.05,
                                0.1,
                                -0.2,
                                1.1,
                                Map.of(5, -100.0, 17, 2.5),
                                -3L))
                        .maxTokens(20)
                        .minTokens(2)
                        .stopStrings(List.of("a", "b", "c", "d"))
                        .topLogprobs(3)
                        .build()),
                true,
                true));
  }

  @Test
  void fillsWhatTheBodyDoesNotSayFromTheDefaults() {
    OpenAiOptions options =
        OpenAiOptions.builder()
            .defaults(
                new OpenAiOptions.Defaults(
                    100, 3, false, true, List.of("END"), Duration.ofMinutes(1), 9L))
            .build();
    assertThat(map("", options).choices())
        .containsExactly(
            GenerationRequest.builder(Conversation.of(new Message.User("hi")))
                .thinking(false)
                .preserveThinking(true)
                .maxTokens(100)
                .minTokens(3)
                .stopStrings(List.of("END"))
                .timeout(Duration.ofMinutes(1))
                .build());
    assertThat(
            map(
                    "'max_tokens':2,'stop':[],'reasoning_effort':'low','chat_template_kwargs':{'preserve_thinking':false}",
                    options)
                .choices())
        .containsExactly(
            GenerationRequest.builder(Conversation.of(new Message.User("hi")))
                .thinking(true)
                .maxTokens(2)
                .minTokens(2)
                .timeout(Duration.ofMinutes(1))
                .build());
  }

  @Test
  void readsMessagesOfEveryRoleAndForm() {
    ObjectNode body =
        Json.object(
            """
            {'messages':[
              {'role':'developer','content':'D','name':'x'},
              {'role':'user','content':[{'type':'text','text':'A'},{'type':'text','text':'B'}]},
              {'role':'assistant','content':null,'reasoning_content':'R','tool_calls':[
                {'id':'c1','type':'function','function':{'name':'f','arguments':''}}]},
              {'role':'tool','tool_call_id':'c1','content':[{'type':'text','text':'42'}]}]}""");
    List<Message> messages =
        new CompletionRequestMapper("nano", OpenAiOptions.builder().build())
            .map(FieldReader.of(body))
            .choices()
            .getFirst()
            .conversation()
            .messages();
    assertThat(messages.get(0)).isEqualTo(new Message.Instructions("D"));
    assertThat(messages.get(1))
        .isEqualTo(new Message.User(List.of(new ContentPart.Text("A"), new ContentPart.Text("B"))));
    assertThat(messages.get(2))
        .isInstanceOfSatisfying(
            Message.Assistant.class,
            answer -> {
              assertThat(answer.content()).isEmpty();
              assertThat(answer.reasoning()).isEqualTo("R");
              assertThat(answer.toolCalls().getFirst().arguments()).isEqualTo(Json.object("{}"));
            });
    assertThat(messages.get(3)).isEqualTo(new Message.ToolResult("42"));
  }

  @Test
  void takesTheLoadedModelItsAliasesAndNoName() {
    OpenAiOptions options = OpenAiOptions.builder().modelAliases(List.of("gpt-4o")).build();
    CompletionRequest unnamed = map("");
    assertThat(map("'model':'nano'", options)).isEqualTo(unnamed);
    assertThat(map("'model':'gpt-4o'", options)).isEqualTo(unnamed);
    assertThat(map("'model':''", options)).isEqualTo(unnamed);
    ApiError other = refusal("'model':'gpt-4o'");
    assertThat(other.status().value()).isEqualTo(404);
    assertThat(other.code()).isEqualTo("model_not_found");
    assertThat(other.message()).contains("\"gpt-4o\"").contains("\"nano\"");
  }

  @Test
  void letsTheNewerTokenLimitWin() {
    assertThat(one("'max_tokens':9,'max_completion_tokens':4").maxTokens()).isEqualTo(4);
    assertThat(one("'max_completion_tokens':5").maxTokens()).isEqualTo(5);
  }

  @Test
  void readsOneStopStringWithoutAList() {
    assertThat(one("'stop':'x'").stopStrings()).containsExactly("x");
    assertThat(one("'stop':[]").stopStrings()).isEmpty();
  }

  @ParameterizedTest
  @CsvSource({
    "none, false",
    "minimal, true",
    "low, true",
    "medium, true",
    "high, true",
    "xhigh, true",
  })
  void readsReasoningEffortAsASwitch(String effort, boolean thinking) {
    assertThat(one("'reasoning_effort':'" + effort + "'").thinking()).isEqualTo(thinking);
  }

  @Test
  void letsTheTemplateSwitchWinOverReasoningEffort() {
    assertThat(
            one("'reasoning_effort':'none','chat_template_kwargs':{'enable_thinking':true}")
                .thinking())
        .isTrue();
  }

  @Test
  void keepsSeedsExactly() {
    assertThat(one("'seed':9007199254740993").sampling().seed()).isEqualTo(9007199254740993L);
    assertThat(one("'seed':-9223372036854775808").sampling().seed()).isEqualTo(Long.MIN_VALUE);
  }

  @Test
  void givesEachChoiceASeedOfItsOwnAndTheFirstTheRequests() {
    List<Long> seeds =
        map("'n':3,'seed':42").choices().stream().map(r -> r.sampling().seed()).toList();
    assertThat(seeds).hasSize(3).doesNotHaveDuplicates().startsWith(42L);
    assertThat(map("'n':3,'seed':42,'temperature':0.5").choices())
        .allSatisfy(choice -> assertThat(choice.sampling().temperature()).isEqualTo(0.5));
    assertThat(map("'n':2").choices())
        .allSatisfy(choice -> assertThat(choice.sampling().seed()).isNull());
    OpenAiOptions seeded =
        OpenAiOptions.builder()
            .defaults(new OpenAiOptions.Defaults(null, 0, null, false, List.of(), null, 42L))
            .build();
    assertThat(map("'n':3", seeded).choices())
        .extracting(choice -> choice.sampling().seed())
        .containsExactly(null, seeds.get(1), seeds.get(2));
  }

  @Test
  void showsToolsUnlessTheChoiceIsNone() {
    assertThat(one(TOOLS).conversation().tools()).hasSize(1);
    assertThat(one(TOOLS + ",'tool_choice':'auto'").conversation().tools()).hasSize(1);
    assertThat(one(TOOLS + ",'tool_choice':'none'").conversation().tools()).isEmpty();
    assertThat(one("'tool_choice':'none'").conversation().tools()).isEmpty();
    assertThat(one("'tools':[],'parallel_tool_calls':false").conversation().tools()).isEmpty();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "'temperature':'1' | temperature | invalid_type",
        "'temperature':-0.1 | temperature | invalid_value",
        "'temperature':1e999 | temperature | invalid_value",
        "'top_p':2 | top_p | invalid_value",
        "'top_k':-2 | top_k | invalid_value",
        "'top_k':1.5 | top_k | invalid_type",
        "'min_p':true | min_p | invalid_type",
        "'presence_penalty':3 | presence_penalty | invalid_value",
        "'frequency_penalty':-3 | frequency_penalty | invalid_value",
        "'repetition_penalty':0 | repetition_penalty | invalid_value",
        "'seed':1.0 | seed | invalid_type",
        "'seed':9223372036854775808 | seed | invalid_value",
        "'logit_bias':[] | logit_bias | invalid_type",
        "'logit_bias':{'x':1} | logit_bias | invalid_value",
        "'logit_bias':{'01':1} | logit_bias | invalid_value",
        "'logit_bias':{'-1':1} | logit_bias | invalid_value",
        "'logit_bias':{'1':'a'} | logit_bias.1 | invalid_type",
        "'logit_bias':{'1':null} | logit_bias.1 | invalid_type",
        "'logit_bias':{'1':101} | logit_bias | invalid_value",
        "'logprobs':1 | logprobs | invalid_type",
        "'logprobs':true,'top_logprobs':21 | top_logprobs | invalid_value",
        "'logprobs':true,'top_logprobs':-1 | top_logprobs | invalid_value",
        "'top_logprobs':3 | top_logprobs | invalid_value",
        "'max_tokens':0 | max_tokens | invalid_value",
        "'max_completion_tokens':-1 | max_completion_tokens | invalid_value",
        "'max_tokens':2147483648 | max_tokens | invalid_value",
        "'max_tokens':'5' | max_tokens | invalid_type",
        "'max_tokens':2.5 | max_tokens | invalid_type",
        "'min_tokens':-1 | min_tokens | invalid_value",
        "'min_tokens':5,'max_tokens':4 | min_tokens | invalid_value",
        "'n':0 | n | invalid_value",
        "'n':9 | n | invalid_value",
        "'n':'2' | n | invalid_type",
        "'stop':5 | stop | invalid_type",
        "'stop':['a',5] | stop[1] | invalid_type",
        "'stop':'' | stop | invalid_value",
        "'stop':['a','b','c','d','e'] | stop | invalid_value",
        "'stream':'true' | stream | invalid_type",
        "'stream_options':true | stream_options | invalid_type",
        "'stream_options':{'include_usage':1} | stream_options.include_usage | invalid_type",
        "'model':5 | model | invalid_type",
        "'response_format':{'type':'grammar'} | response_format | unsupported_value",
        "'response_format':{'type':'json_schema','json_schema':{}} | response_format.json_schema.schema | invalid_value",
        "'response_format':{'type':'json_schema','json_schema':{'schema':[]}} | response_format.json_schema.schema | invalid_value",
        "'response_format':{} | response_format.type | invalid_value",
        "'response_format':'text' | response_format | invalid_type",
        "'reasoning_effort':'huge' | reasoning_effort | invalid_value",
        "'reasoning_effort':3 | reasoning_effort | invalid_type",
        "'chat_template_kwargs':{'enable_thinking':'no'} | chat_template_kwargs.enable_thinking | invalid_type",
        "'functions':[] | functions | unsupported_value",
        "'function_call':'auto' | function_call | unsupported_value",
        "'audio':{} | audio | unsupported_value",
        "'modalities':['text','audio'] | modalities | unsupported_value",
        "'web_search_options':{} | web_search_options | unsupported_value",
        "'tool_choice':'required' | tool_choice | invalid_value",
        "'tool_choice':'sometimes' | tool_choice | invalid_type",
        "'tools':{} | tools | invalid_value",
        "'tools':[{'type':'function','function':{'name':' '}}] | tools[0].function.name | invalid_value",
        "'tools':[{'type':'custom'}] | tools[0].type | invalid_value",
      })
  void refusesAWrongFieldWithItsPath(String fields, String param, String code) {
    ApiError error = refusal(fields);
    assertThat(error.status().value()).isEqualTo(400);
    assertThat(error.type()).isEqualTo("invalid_request_error");
    assertThat(error.param()).isEqualTo(param);
    assertThat(error.code()).isEqualTo(code);
  }

  @Test
  void forcesCalls() {
    assertThat(one(TOOLS + ",'tool_choice':'required'").toolChoice())
        .isEqualTo(ToolChoice.REQUIRED);
    assertThat(
            one(TOOLS + ",'tool_choice':{'type':'function','function':{'name':'now'}}")
                .toolChoice())
        .isEqualTo(new ToolChoice.Named("now"));
    assertThat(one(TOOLS + ",'parallel_tool_calls':false").parallelToolCalls()).isFalse();
    assertThat(refusal(TOOLS + ",'tool_choice':{'type':'allowed_tools'}").param())
        .isEqualTo("tool_choice");
  }

  @Test
  void constrainsTheAnswerToTheResponseFormat() {
    assertThat(one("'response_format':{'type':'text'}").output()).isNull();
    assertThat(one("'response_format':{'type':'json_object'}").output())
        .isEqualTo(new OutputConstraint.JsonObject());
    assertThat(
            one("'response_format':{'type':'json_schema','json_schema':{'name':'x','strict':true,"
                    + "'schema':{'type':'integer'}}}")
                .output())
        .isEqualTo(OutputConstraint.JsonSchema.parse("{\"type\":\"integer\"}"));
  }

  @Test
  void refusesAChoiceOfAnUndeclaredTool() {
    ApiError error =
        refusal(TOOLS + ",'tool_choice':{'type':'function','function':{'name':'nope'}}");
    assertThat(error.param()).isEqualTo("tool_choice");
    assertThat(error.message()).contains("\"nope\"");
  }

  @Test
  void speaksOfOptionsByTheirNamesInTheApi() {
    assertThat(refusal("'top_p':2").message())
        .isEqualTo("top_p is 2.0; it must be at least 0.0 and at most 1.0");
    assertThat(refusal("'min_tokens':5,'max_tokens':4").message())
        .isEqualTo("min_tokens is 5; it must be between 0 and max_tokens (4)");
    assertThat(refusal("'max_tokens':'5'").message())
        .isEqualTo("max_tokens is \"5\"; it must be an integer.");
  }

  @Test
  void doesNotRepeatLongInputInMessages() {
    assertThat(refusal("'model':'" + "m".repeat(100_000) + "'").message().length()).isLessThan(200);
    assertThat(refusal("'max_tokens':" + "9".repeat(900)).message().length()).isLessThan(200);
    assertThat(refusal("'temperature':'" + "t".repeat(100_000) + "'").message().length())
        .isLessThan(200);
  }

  @Test
  void refusesABodyThatIsNoObject() {
    Throwable thrown =
        catchThrowable(
            () ->
                new CompletionRequestMapper("nano", OpenAiOptions.builder().build())
                    .map(FieldReader.of(Json.read("[1]"))));
    assertThat(ErrorMapper.map(thrown).message())
        .isEqualTo("The body is an array; it must be a JSON object.");
  }
}
