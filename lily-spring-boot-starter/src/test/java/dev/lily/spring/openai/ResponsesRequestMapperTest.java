package dev.lily.spring.openai;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.lily.engine.chat.ContentPart;
import dev.lily.engine.chat.Message;
import dev.lily.engine.chat.ToolCall;
import dev.lily.engine.chat.ToolDefinition;
import dev.lily.engine.generation.GenerationRequest;
import dev.lily.engine.generation.InvalidRequestException;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ResponsesRequestMapperTest {
  private static final String TOOLS =
      "'tools':[{'type':'function','name':'now','description':'d','parameters':{'type':'object'},'strict':true}]";

  private static ResponsesRequest map(String fields) {
    return new ResponsesRequestMapper("nano", OpenAiOptions.builder().build())
        .map(FieldReader.of(Json.object("{" + fields + "}")));
  }

  private static List<Message> messages(String fields) {
    return map(fields).request().conversation().messages();
  }

  private static ApiError refusal(String fields) {
    Throwable thrown = catchThrowable(() -> map(fields));
    assertThat(thrown).isNotNull();
    return ErrorMapper.map(thrown);
  }

  @Test
  void takesATextForAUserMessage() {
    assertThat(map("'input':'hi'").request()).isEqualTo(GenerationRequest.of("hi"));
  }

  @Test
  void putsInstructionsFirst() {
    assertThat(messages("'input':'hi','instructions':'Be brief.'"))
        .containsExactly(new Message.Instructions("Be brief."), new Message.User("hi"));
  }

  @Test
  void joinsTheItemsOfATurnToOneMessage() {
    assertThat(
            messages(
                """
                'input':[
                  {'role':'developer','content':'D'},
                  {'type':'message','role':'user','content':[{'type':'input_text','text':'u'}]},
                  {'type':'reasoning','id':'rs_1','summary':[],
                   'content':[{'type':'reasoning_text','text':'r'}]},
                  {'type':'message','role':'assistant','id':'msg_1','status':'completed',
                   'content':[{'type':'output_text','text':'a','annotations':[]}]},
                  {'type':'function_call','call_id':'c1','name':'f','arguments':'{\\"x\\":1}'},
                  {'type':'function_call','call_id':'c2','name':'g','arguments':''},
                  {'type':'function_call_output','call_id':'c2',
                   'output':[{'type':'input_text','text':'2'}]},
                  {'type':'function_call_output','call_id':'c1','output':'1'},
                  {'type':'reasoning','id':'rs_2','summary':[{'type':'summary_text','text':'s'}]},
                  {'type':'message','role':'assistant','content':'b'},
                  {'role':'assistant','content':'c'}]"""))
        .usingRecursiveComparison()
        .ignoringFieldsMatchingRegexes(".*toolCalls.*id")
        .isEqualTo(
            List.of(
                new Message.Instructions("D"),
                new Message.User("u"),
                new Message.Assistant(
                    List.of(new ContentPart.Text("a")),
                    "r",
                    List.of(
                        new ToolCall("", "f", Json.object("{'x':1}")),
                        new ToolCall("", "g", Json.object("{}")))),
                new Message.ToolResult(List.of(new ContentPart.Text("1"))),
                new Message.ToolResult(List.of(new ContentPart.Text("2"))),
                new Message.Assistant(List.of(new ContentPart.Text("b")), "s", List.of()),
                new Message.Assistant(List.of(new ContentPart.Text("c")), null, List.of())));
  }

  @Test
  void takesFunctionsForTools() {
    ResponsesRequest request = map("'input':'hi'," + TOOLS);
    assertThat(request.request().conversation().tools())
        .extracting(ToolDefinition::name)
        .containsExactly("now");
    assertThat(map("'input':'hi','tool_choice':'none'," + TOOLS).request().conversation().tools())
        .isEmpty();
    assertThat(
            map("'input':'hi','parallel_tool_calls':false," + TOOLS).request().parallelToolCalls())
        .isFalse();
  }

  @Test
  void takesLimitsAndSampling() {
    GenerationRequest request =
        map("'input':'hi','max_output_tokens':9,'temperature':0,'top_p':0.5,'reasoning':{'effort':'none'}")
            .request();
    assertThat(request.maxTokens()).isEqualTo(9);
    assertThat(request.sampling().temperature()).isZero();
    assertThat(request.sampling().topP()).isEqualTo(0.5);
    assertThat(request.thinking()).isFalse();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "'model':'nano' | input",
        "'input':null | input",
        "'input':[] | input",
        "'input':1 | input",
        "'input':[1] | input[0]",
        "'input':[{'role':'robot','content':'x'}] | input[0].role",
        "'instructions':'i','input':[{'role':'user'}] | input[0].content",
        "'input':[{'role':'user','content':[{'type':'input_image','image_url':'x'},1]}] | input[0].content[1]",
        "'input':[{'type':'item_reference','id':'x'}] | input[0]",
        "'input':[{'type':'computer_call'}] | input[0].type",
        "'input':[{'role':'user','content':'x'},{'type':'function_call','name':'f','arguments':'{'}] | input[1].arguments",
        "'input':[{'role':'user','content':'x'},{'type':'reasoning','content':'x'}] | input[1].content",
        "'input':'x','previous_response_id':'resp_1' | previous_response_id",
        "'input':'x','conversation':'c' | conversation",
        "'input':'x','prompt':{'id':'p'} | prompt",
        "'input':'x','store':true | store",
        "'input':'x','background':true | background",
        "'input':'x','truncation':'auto' | truncation",
        "'input':'x','top_logprobs':1 | top_logprobs",
        "'input':'x','include':['message.output_text.logprobs'] | include",
        "'input':'x','max_output_tokens':0 | max_output_tokens",
        "'input':'x','text':{'format':{'type':'json_schema'}} | text.format.schema",
        "'input':'x','reasoning':{'effort':'huge'} | reasoning.effort",
        "'input':'x','tools':[{'type':'web_search'}] | tools[0].type",
        "'input':'x','tools':[{'type':'function'}] | tools[0].name",
        "'input':'x','tool_choice':'required' | tool_choice",
        "'input':'x','tool_choice':{'type':'function','name':'f'} | tool_choice",
        "'input':'x','stream':1 | stream",
        "'input':'x','model':'other' | model",
      })
  void refusesWhatItCannotHonourNamingTheField(String fields, String param) {
    assertThat(refusal(fields).param()).isEqualTo(param);
  }

  @Test
  void acceptsWhatSaysThatNothingIsStored() {
    assertThat(
            map("'input':'x','store':false,'background':false,'truncation':'disabled','include':['reasoning.encrypted_content'],'text':{'format':{'type':'text'},'verbosity':'low'}")
                .request())
        .isEqualTo(GenerationRequest.of("x"));
  }

  @Test
  void tellsWhichItemTheEngineRefuses() {
    ResponsesInput input =
        map("'instructions':'i','input':[{'role':'user','content':'x'},{'type':'function_call','name':'f','arguments':'{}'}]")
            .input();
    ApiError error =
        ErrorMapper.map(
            input.inWordsOfTheOperation(
                new InvalidRequestException(
                    "messages[1].content[0]",
                    "messages[1] is wrong, not messages[99].tool_calls[7]")));
    assertThat(error.param()).isEqualTo("input[0].content[0]");
    assertThat(error.message()).isEqualTo("input[0] is wrong, not messages[99].tool_calls[7]");
  }
}
