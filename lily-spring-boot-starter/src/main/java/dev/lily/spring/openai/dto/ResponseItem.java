package dev.lily.spring.openai.dto;

import java.util.List;

/** An item of a response's output. Its status is {@code in_progress} or {@code completed}. */
public sealed interface ResponseItem {
  String IN_PROGRESS = "in_progress";
  String COMPLETED = "completed";
  String INCOMPLETE = "incomplete";

  /**
   * Reasoning, either as it is or, if a summary was asked for, as that.
   *
   * @param type always {@code reasoning}
   */
  record Reasoning(String id, String type, List<Part> summary, List<Part> content, String status)
      implements ResponseItem {
    public static Reasoning of(String id, List<Part> summary, List<Part> content, String status) {
      return new Reasoning(id, "reasoning", summary, content, status);
    }
  }

  /**
   * Text of the answer.
   *
   * @param type always {@code message}
   */
  record Message(String id, String type, String role, List<OutputText> content, String status)
      implements ResponseItem {
    public static Message of(String id, List<OutputText> content, String status) {
      return new Message(id, "message", "assistant", content, status);
    }
  }

  /**
   * A call of a function.
   *
   * @param id of the item
   * @param type always {@code function_call}
   * @param callId which the call's output has to name
   * @param arguments JSON text of an object
   */
  record FunctionCall(
      String id, String type, String callId, String name, String arguments, String status)
      implements ResponseItem {
    public static FunctionCall of(
        String id, String callId, String name, String arguments, String status) {
      return new FunctionCall(id, "function_call", callId, name, arguments, status);
    }
  }

  /**
   * A piece of reasoning.
   *
   * @param type {@code reasoning_text} or {@code summary_text}
   */
  record Part(String type, String text) {}

  /**
   * A piece of a message.
   *
   * @param type always {@code output_text}
   * @param annotations always empty
   * @param logprobs always empty
   */
  record OutputText(String type, String text, List<String> annotations, List<String> logprobs) {
    public static OutputText of(String text) {
      return new OutputText("output_text", text, List.of(), List.of());
    }
  }
}
