package dev.lily.engine.chat;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import tools.jackson.databind.JsonNode;

/** Renders conversations as the Qwen3.6 chat template does. Immutable and thread-safe. */
public final class ChatTemplate {
  /** Begins every message; a control token, so that text of callers never becomes one. */
  public static final String MESSAGE_START = "<|im_start|>";

  private static final String RESOURCE = "chat_template.jinja";

  private static final String TOOLS_BEGIN =
      """
      # Tools

      You have access to the following functions:

      <tools>""";

  private static final String TOOLS_END =
      """

      </tools>

      If you choose to call a function ONLY reply in the following format with NO suffix:

      <tool_call>
      <function=example_function_name>
      <parameter=example_parameter_1>
      value_1
      </parameter>
      <parameter=example_parameter_2>
      This is the value for the second parameter
      that can span
      multiple lines
      </parameter>
      </function>
      </tool_call>

      <IMPORTANT>
      Reminder:
      - Function calls MUST follow the specified format: an inner <function=...></function> block must be nested within <tool_call></tool_call> XML tags
      - Required parameters MUST be specified
      - You may provide optional reasoning for your function call in natural language BEFORE the function call, but NOT after
      - If there is no function call available, answer the question like normal with your current knowledge and do not tell the user about function calls
      </IMPORTANT>""";

  private static final String THINK = "<think>";
  private static final String END_THINK = "</think>";

  /**
   * Switches of the template.
   *
   * @param addGenerationPrompt open the assistant's turn
   * @param enableThinking let the model reason first
   * @param preserveThinking keep the reasoning of all earlier turns
   * @param addVisionId number images and videos
   */
  public record Options(
      boolean addGenerationPrompt,
      boolean enableThinking,
      boolean preserveThinking,
      boolean addVisionId) {}

  /** Whether a checkpoint's template text is the one this class renders (trailing breaks aside). */
  public static boolean isKnown(String template) {
    return withoutTrailingBreaks(template).equals(withoutTrailingBreaks(knownTemplate()));
  }

  /**
   * Renders a conversation. Three rules come before the template's own:
   *
   * <ul>
   *   <li>System messages, wherever they stand, become one leading block in their order: each is
   *       trimmed, blank ones are skipped, and the rest are joined by an empty line ({@code
   *       "\n\n"}, which is in no literal range). The template alone refuses a second or late one.
   *   <li>Assistant messages at the end that hold neither content nor reasoning nor calls are left
   *       out, as leftovers of a failed turn: the model answers the message before them.
   *   <li>A conversation cannot begin with a tool result. The template alone would write it without
   *       opening a turn.
   * </ul>
   *
   * @throws InvalidConversationException where the template raises an error; the message starts
   *     with the template's words
   */
  public RenderedPrompt render(Conversation conversation, Options options) {
    List<Turn> turns = Turn.of(conversation.messages(), options.addVisionId());
    return render(ConversationRules.apply(turns), conversation.tools(), options);
  }

  /** Renders a conversation by the template's rules alone. */
  RenderedPrompt renderStrictly(Conversation conversation, Options options) {
    List<Turn> turns = Turn.of(conversation.messages(), options.addVisionId());
    return render(turns, conversation.tools(), options);
  }

  private static RenderedPrompt render(
      List<Turn> turns, List<ToolDefinition> tools, Options options) {
    if (turns.isEmpty()) {
      throw new InvalidConversationException(
          "messages", "No messages provided. Send at least one user message.");
    }
    MarkedText.Builder out = new MarkedText.Builder();
    writeSystemBlock(turns.getFirst(), tools, out);
    int lastQuery = lastQuery(turns);
    for (int i = 0; i < turns.size(); i++) {
      Turn turn = turns.get(i);
      switch (turn.message()) {
        case Message.Instructions _ -> requireLeading(turn, i);
        case Message.User _ ->
            out.template("<|im_start|>user\n").append(turn.content()).template("<|im_end|>\n");
        case Message.Assistant answer ->
            writeAnswer(turn, answer, options.preserveThinking() || i > lastQuery, out);
        case Message.ToolResult _ -> writeToolResult(turns, i, out);
      }
    }
    if (options.addGenerationPrompt()) {
      out.template("<|im_start|>assistant\n");
      out.template(options.enableThinking() ? "<think>\n" : "<think>\n\n</think>\n\n");
    }
    MarkedText prompt = out.build();
    return new RenderedPrompt(
        prompt.text(),
        prompt.literalRanges(),
        options.addGenerationPrompt() && options.enableThinking());
  }

  private static void writeSystemBlock(
      Turn first, List<ToolDefinition> tools, MarkedText.Builder out) {
    boolean instructed = first.message() instanceof Message.Instructions;
    if (tools.isEmpty()) {
      if (instructed) {
        out.template("<|im_start|>system\n").append(first.content()).template("<|im_end|>\n");
      }
      return;
    }
    out.template("<|im_start|>system\n").template(TOOLS_BEGIN);
    for (int i = 0; i < tools.size(); i++) {
      out.template("\n").literal(PythonJson.write(tools.get(i).json(), "tools[" + i + "]"));
    }
    out.template(TOOLS_END);
    if (instructed && !first.content().isEmpty()) {
      out.template("\n\n").append(first.content());
    }
    out.template("<|im_end|>\n");
  }

  /** Index of the last user message that is not a tool result in disguise. */
  private static int lastQuery(List<Turn> turns) {
    for (int i = turns.size() - 1; i >= 0; i--) {
      String content = turns.get(i).content().text();
      if (turns.get(i).message() instanceof Message.User
          && !(content.startsWith("<tool_response>") && content.endsWith("</tool_response>"))) {
        return i;
      }
    }
    throw new InvalidConversationException(
        "messages", "No user query found in messages. Send at least one user message.");
  }

  private static void requireLeading(Turn turn, int position) {
    if (position > 0) {
      throw new InvalidConversationException(
          "messages[%d].role".formatted(turn.index()), "System message must be at the beginning.");
    }
  }

  private static void writeAnswer(
      Turn turn, Message.Assistant answer, boolean withReasoning, MarkedText.Builder out) {
    MarkedText content = turn.content();
    MarkedText reasoning = MarkedText.EMPTY;
    if (answer.reasoning() != null) {
      reasoning = MarkedText.literal(answer.reasoning());
    } else {
      int end = content.text().indexOf(END_THINK);
      if (end >= 0) {
        MarkedText head = content.substring(0, end);
        int begin = head.text().lastIndexOf(THINK);
        reasoning = begin < 0 ? head : head.substring(begin + THINK.length(), end);
        int tail = content.text().lastIndexOf(END_THINK) + END_THINK.length();
        content = content.substring(tail, content.text().length()).withoutLeadingNewlines();
      }
    }
    out.template("<|im_start|>assistant\n");
    if (withReasoning) {
      out.template("<think>\n").append(reasoning.trim()).template("\n</think>\n\n");
    }
    out.append(content);
    String separator = content.isBlank() ? "" : "\n\n";
    for (int j = 0; j < answer.toolCalls().size(); j++) {
      out.template(separator);
      writeCall(answer.toolCalls().get(j), turn.index(), j, out);
      separator = "\n";
    }
    out.template("<|im_end|>\n");
  }

  private static void writeCall(ToolCall call, int index, int position, MarkedText.Builder out) {
    out.template("<tool_call>\n<function=").literal(call.name()).template(">\n");
    for (Map.Entry<String, JsonNode> argument : call.arguments().properties()) {
      JsonNode value = argument.getValue();
      out.template("<parameter=").literal(argument.getKey()).template(">\n");
      out.literal(
          value.isString()
              ? value.stringValue()
              : PythonJson.write(
                  value,
                  "messages[%d].tool_calls[%d].function.arguments".formatted(index, position)));
      out.template("\n</parameter>\n");
    }
    out.template("</function>\n</tool_call>");
  }

  private static void writeToolResult(List<Turn> turns, int position, MarkedText.Builder out) {
    if (position > 0 && !isToolResult(turns.get(position - 1))) {
      out.template("<|im_start|>user");
    }
    out.template("\n<tool_response>\n");
    out.append(turns.get(position).content());
    out.template("\n</tool_response>");
    if (position == turns.size() - 1 || !isToolResult(turns.get(position + 1))) {
      out.template("<|im_end|>\n");
    }
  }

  private static boolean isToolResult(Turn turn) {
    return turn.message() instanceof Message.ToolResult;
  }

  private static String knownTemplate() {
    try (InputStream in = ChatTemplate.class.getResourceAsStream(RESOURCE)) {
      if (in == null) {
        throw new IllegalStateException(
            "The resource " + RESOURCE + " is missing beside ChatTemplate. Is the jar complete?");
      }
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot read the resource " + RESOURCE, e);
    }
  }

  private static String withoutTrailingBreaks(String text) {
    int end = text.length();
    while (end > 0 && (text.charAt(end - 1) == '\n' || text.charAt(end - 1) == '\r')) {
      end--;
    }
    return text.substring(0, end);
  }
}
