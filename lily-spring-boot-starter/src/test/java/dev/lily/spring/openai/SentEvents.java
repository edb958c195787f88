package dev.lily.spring.openai;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.ObjectNode;

/**
 * The events of a stream, read as strictly as the strictest client.
 *
 * @param json what each event carries, in order
 * @param heartbeats number of comments
 * @param done whether {@code [DONE]} came, after which nothing may come
 */
record SentEvents(List<JsonNode> json, int heartbeats, boolean done) {

  static SentEvents of(String body) {
    assertThat(body).endsWith("\n\n");
    List<JsonNode> json = new ArrayList<>();
    int heartbeats = 0;
    boolean done = false;
    for (String event : body.substring(0, body.length() - 2).split("\n\n", -1)) {
      assertThat(done).as("something comes after [DONE]").isFalse();
      if (event.equals(": heartbeat")) {
        heartbeats++;
      } else if (event.equals("data: [DONE]")) {
        done = true;
      } else {
        assertThat(event).startsWith("data: {").doesNotContain("\n");
        json.add(Json.read(event.substring("data: ".length())));
      }
    }
    return new SentEvents(json, heartbeats, done);
  }

  /** The one choice of each chunk that has one. */
  List<JsonNode> choices() {
    return json.stream()
        .map(chunk -> chunk.path("choices"))
        .filter(choices -> !choices.isEmpty())
        .map(choices -> choices.get(0))
        .toList();
  }

  /**
   * The whole answer that a client makes of the chunks, as {@code choices} of a completion that is
   * not streamed. Checks that each choice begins with its role, has one finish reason, at its end,
   * and that tool calls come as clients need them.
   */
  ArrayNode assembled() {
    TreeMap<Integer, Assembly> choices = new TreeMap<>();
    for (JsonNode choice : choices()) {
      choices.computeIfAbsent(choice.path("index").intValue(), Assembly::new).add(choice);
    }
    ArrayNode assembled = Json.array();
    choices.values().forEach(choice -> assembled.add(choice.whole()));
    return assembled;
  }

  private static final class Assembly {
    private final int index;
    private final StringBuilder content = new StringBuilder();
    private final StringBuilder reasoning = new StringBuilder();
    private final ArrayNode toolCalls = Json.array();
    private final ArrayNode logprobs = Json.array();
    private boolean begun;
    private boolean hasLogprobs;
    private String finishReason = "";

    Assembly(int index) {
      this.index = index;
    }

    void add(JsonNode choice) {
      JsonNode delta = choice.path("delta");
      assertThat(finishReason).as("a chunk comes after the finish reason").isEmpty();
      assertThat(delta.has("role")).as("the role is in the first delta only").isEqualTo(!begun);
      if (!begun) {
        assertThat(delta).isEqualTo(Json.object("{'role':'assistant','content':''}"));
      }
      begun = true;
      content.append(delta.path("content").asString(""));
      reasoning.append(delta.path("reasoning_content").asString(""));
      delta.path("tool_calls").forEach(this::addCall);
      if (!choice.path("logprobs").isNull()) {
        hasLogprobs = true;
        logprobs.addAll((ArrayNode) choice.path("logprobs").path("content"));
      }
      if (!choice.path("finish_reason").isNull()) {
        finishReason = choice.path("finish_reason").stringValue();
        assertThat(delta).isEqualTo(Json.object("{}"));
      }
    }

    private void addCall(JsonNode delta) {
      int at = delta.path("index").intValue();
      if (delta.has("id")) {
        assertThat(at).isEqualTo(toolCalls.size());
        assertThat(delta.path("id").stringValue()).isNotEmpty();
        assertThat(delta.path("function").path("name").stringValue()).isNotEmpty();
        ObjectNode call = ((ObjectNode) delta).deepCopy();
        call.remove("index");
        toolCalls.add(call);
      } else {
        assertThat(delta.propertyNames()).containsExactly("index", "function");
        assertThat(delta.path("function").propertyNames()).containsExactly("arguments");
        ObjectNode function = (ObjectNode) toolCalls.get(at).path("function");
        function.put(
            "arguments",
            function.path("arguments").stringValue()
                + delta.path("function").path("arguments").stringValue());
      }
    }

    ObjectNode whole() {
      assertThat(finishReason).isIn("stop", "length", "tool_calls");
      ObjectNode choice = Json.object("{}");
      choice.put("index", index);
      ObjectNode message = choice.putObject("message");
      message.put("role", "assistant");
      if (content.isEmpty() && !toolCalls.isEmpty()) {
        message.putNull("content");
      } else {
        message.put("content", content.toString());
      }
      message.putNull("refusal");
      if (!reasoning.isEmpty()) {
        message.put("reasoning_content", reasoning.toString());
      }
      if (!toolCalls.isEmpty()) {
        message.set("tool_calls", toolCalls);
      }
      if (hasLogprobs) {
        ObjectNode all = choice.putObject("logprobs");
        all.set("content", logprobs);
        all.putNull("refusal");
      } else {
        choice.putNull("logprobs");
      }
      choice.put("finish_reason", finishReason);
      return choice;
    }
  }
}
