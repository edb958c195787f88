package dev.lily.engine.chat;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

/** Raw answers of models, each of them a failure of some engine, and what they have to become. */
class ResponseParserTranscriptTest {
  private static final int PAIRS_WITHIN = 120;

  record Transcript(String id, JsonNode json) {
    List<ToolDefinition> tools() {
      List<ToolDefinition> tools = new ArrayList<>();
      json.path("tools").forEach(tool -> tools.add(new ToolDefinition((ObjectNode) tool)));
      return tools;
    }

    String raw() {
      return json.path("raw").stringValue();
    }

    ParsedResponse parse(List<String> pieces) {
      return ParsedResponse.of(
          tools(),
          json.path("thinking").booleanValue(),
          json.path("engine_finish").stringValue().equals("length"),
          pieces);
    }

    @Override
    public String toString() {
      return id;
    }
  }

  static Stream<Transcript> transcripts() throws IOException {
    try (InputStream in =
        ResponseParserTranscriptTest.class.getResourceAsStream(
            "/field-cases/toolcall-transcripts.json")) {
      JsonNode root = JsonMapper.shared().readTree(Objects.requireNonNull(in));
      List<Transcript> transcripts = new ArrayList<>();
      root.path("cases").forEach(c -> transcripts.add(new Transcript(c.path("id").asString(), c)));
      return transcripts.stream();
    }
  }

  @Test
  void knowsEveryTranscript() throws IOException {
    assertThat(transcripts().map(Transcript::id)).hasSize(35).doesNotHaveDuplicates();
  }

  @ParameterizedTest
  @MethodSource("transcripts")
  void becomesTheExpectedMessage(Transcript transcript) {
    JsonNode expected = transcript.json().path("expect");
    List<ParsedResponse.Call> calls = new ArrayList<>();
    expected
        .path("tool_calls")
        .forEach(
            call ->
                calls.add(
                    new ParsedResponse.Call(
                        call.path("name").stringValue(), (ObjectNode) call.path("arguments"))));

    ParsedResponse parsed = transcript.parse(List.of(transcript.raw()));

    assertThat(parsed.reasoning()).isEqualTo(expected.path("reasoning").stringValue());
    assertThat(parsed.answer()).isEqualTo(expected.path("content").stringValue());
    assertThat(parsed.calls()).isEqualTo(calls);
    assertThat(parsed.incomplete())
        .hasSize(expected.path("finish_reason").stringValue().equals("length") ? 1 : 0);
  }

  @ParameterizedTest
  @MethodSource("transcripts")
  void isTheSameHoweverItIsCut(Transcript transcript) {
    String raw = transcript.raw();
    ParsedResponse whole = transcript.parse(List.of(raw));

    assertThat(transcript.parse(ParsedResponse.characters(raw))).isEqualTo(whole);
    for (int i = 0; i <= raw.length(); i++) {
      assertThat(transcript.parse(ParsedResponse.cut(raw, i))).as("cut at %d", i).isEqualTo(whole);
    }
    int end = Math.min(PAIRS_WITHIN, raw.length());
    for (int i = 0; i < end; i++) {
      for (int j = i + 1; j < end; j++) {
        ParsedResponse cut = transcript.parse(ParsedResponse.cut(raw, i, j));
        if (!cut.equals(whole)) {
          assertThat(cut).as("cut at %d and %d", i, j).isEqualTo(whole);
        }
      }
    }
  }
}
