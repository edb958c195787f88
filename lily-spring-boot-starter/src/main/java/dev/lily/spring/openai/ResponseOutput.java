package dev.lily.spring.openai;

import dev.lily.engine.chat.ResponsePart;
import dev.lily.engine.chat.ToolCall;
import dev.lily.spring.openai.dto.ResponseItem;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Puts the parts of an answer together to the items of a response, and tells each step as an event.
 * Reasoning, text and calls are items of their own, in the order in which the model wrote them. Not
 * thread-safe.
 */
final class ResponseOutput {
  private final ResponseEvents events;
  private final boolean summarised;
  private final List<ResponseItem> items = new ArrayList<>();
  private @Nullable OpenItem open;

  /**
   * @param summarised whether reasoning is given as its own summary
   */
  ResponseOutput(ResponseEvents events, boolean summarised) {
    this.events = events;
    this.summarised = summarised;
  }

  /** The items so far, without one that is still open. */
  List<ResponseItem> items() {
    return List.copyOf(items);
  }

  void accept(ResponsePart part) {
    switch (part) {
      case ResponsePart.ReasoningText thought -> {
        OpenItem item = open instanceof OpenReasoning running ? running : begin(OpenReasoning::new);
        item.append(thought.text());
      }
      case ResponsePart.AnswerText answer -> {
        OpenItem item = open instanceof OpenMessage running ? running : begin(OpenMessage::new);
        item.append(answer.text());
      }
      case ResponsePart.CalledTool called -> {
        end(ResponseItem.COMPLETED);
        addCall(called.call());
      }
      case ResponsePart.IncompleteToolCall _ -> {}
    }
  }

  /**
   * Ends the answer.
   *
   * @param truncated whether a limit cut it off
   */
  void finish(boolean truncated) {
    end(truncated ? ResponseItem.INCOMPLETE : ResponseItem.COMPLETED);
  }

  private OpenItem begin(Supplier<OpenItem> next) {
    end(ResponseItem.COMPLETED);
    OpenItem item = next.get();
    item.begin();
    open = item;
    return item;
  }

  private void end(String status) {
    OpenItem ended = open;
    if (ended != null) {
      open = null;
      ended.end(status);
    }
  }

  private void addCall(ToolCall call) {
    int index = items.size();
    String id = AnswerIdentities.id("fc_");
    String arguments = WireJson.text(call.arguments());
    added(
        index,
        ResponseItem.FunctionCall.of(id, call.id(), call.name(), "", ResponseItem.IN_PROGRESS));
    events.add(
        "response.function_call_arguments.delta",
        "item_id",
        id,
        "output_index",
        index,
        "delta",
        arguments);
    events.add(
        "response.function_call_arguments.done",
        "item_id",
        id,
        "output_index",
        index,
        "name",
        call.name(),
        "arguments",
        arguments);
    done(
        index,
        ResponseItem.FunctionCall.of(
            id, call.id(), call.name(), arguments, ResponseItem.COMPLETED));
  }

  private void added(int index, ResponseItem item) {
    events.add("response.output_item.added", "output_index", index, "item", item);
  }

  private void done(int index, ResponseItem item) {
    events.add("response.output_item.done", "output_index", index, "item", item);
    items.add(item);
  }

  /** An item whose text is still growing. */
  private abstract sealed class OpenItem {
    final String id;
    final int index = items.size();
    final StringBuilder text = new StringBuilder();

    OpenItem(String prefix) {
      id = AnswerIdentities.id(prefix);
    }

    abstract void begin();

    abstract void append(String piece);

    abstract void end(String status);

    /** An event about the item's only part. */
    void tell(String type, String partIndex, String field, Object value) {
      events.add(type, "item_id", id, "output_index", index, partIndex, 0, field, value);
    }
  }

  private final class OpenMessage extends OpenItem {
    OpenMessage() {
      super("msg_");
    }

    @Override
    void begin() {
      added(index, ResponseItem.Message.of(id, List.of(), ResponseItem.IN_PROGRESS));
      tell("response.content_part.added", "content_index", "part", ResponseItem.OutputText.of(""));
    }

    @Override
    void append(String piece) {
      text.append(piece);
      events.add(
          "response.output_text.delta",
          "item_id",
          id,
          "output_index",
          index,
          "content_index",
          0,
          "delta",
          piece,
          "logprobs",
          List.of());
    }

    @Override
    void end(String status) {
      ResponseItem.OutputText part = ResponseItem.OutputText.of(text.toString());
      events.add(
          "response.output_text.done",
          "item_id",
          id,
          "output_index",
          index,
          "content_index",
          0,
          "text",
          part.text(),
          "logprobs",
          List.of());
      tell("response.content_part.done", "content_index", "part", part);
      done(index, ResponseItem.Message.of(id, List.of(part), status));
    }
  }

  private final class OpenReasoning extends OpenItem {
    private final String part = summarised ? "reasoning_summary_part" : "content_part";
    private final String texts = summarised ? "reasoning_summary_text" : "reasoning_text";
    private final String partIndex = summarised ? "summary_index" : "content_index";

    OpenReasoning() {
      super("rs_");
    }

    private ResponseItem.Part part() {
      return new ResponseItem.Part(summarised ? "summary_text" : "reasoning_text", text.toString());
    }

    private ResponseItem item(List<ResponseItem.Part> parts, String status) {
      return summarised
          ? ResponseItem.Reasoning.of(id, parts, List.of(), status)
          : ResponseItem.Reasoning.of(id, List.of(), parts, status);
    }

    @Override
    void begin() {
      added(index, item(List.of(), ResponseItem.IN_PROGRESS));
      tell("response." + part + ".added", partIndex, "part", part());
    }

    @Override
    void append(String piece) {
      text.append(piece);
      tell("response." + texts + ".delta", partIndex, "delta", piece);
    }

    @Override
    void end(String status) {
      tell("response." + texts + ".done", partIndex, "text", text.toString());
      tell("response." + part + ".done", partIndex, "part", part());
      done(index, item(List.of(part()), status));
    }
  }
}
