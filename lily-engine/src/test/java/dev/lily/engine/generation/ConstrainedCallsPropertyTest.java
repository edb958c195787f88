package dev.lily.engine.generation;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.chat.ResponseParser;
import dev.lily.engine.chat.ResponsePart;
import dev.lily.engine.chat.ToolDefinition;
import dev.lily.engine.constraint.AnswerShape;
import dev.lily.engine.constraint.Matcher;
import dev.lily.engine.constraint.TokenVocabulary;
import java.io.ByteArrayOutputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

/**
 * Whatever calls the grammar lets through, the parser reads back as they were meant, even if texts
 * are full of the format's own tags.
 */
class ConstrainedCallsPropertyTest {
  private static final JsonMapper MAPPER = JsonMapper.builder().build();
  private static final ObjectNode PARAMETERS =
      (ObjectNode)
          MAPPER.readTree(
              """
              {"type":"object","properties":{
                 "list":{"type":"array","items":{"type":"string"},"maxItems":3},
                 "text":{"type":"string","maxLength":40},
                 "either":{"type":["integer","string"],"maxLength":9},
                 "maybe":{"anyOf":[{"type":"null"},{"type":"boolean"}]}},
               "required":["list"]}""");
  private static final List<String> PIECES =
      List.of(
          "<tool_call>",
          "</tool_call>",
          "<function=f>",
          "</function>",
          "<parameter=text>",
          "</parameter>",
          "<parameter=list>",
          "\n</parameter>\n",
          "\n</function>\n",
          "\n",
          "\\n",
          "\"",
          "\",\"",
          "\"]",
          "[\"",
          "a",
          "b ",
          "null",
          "true",
          "12",
          "<b>",
          "</",
          "Word");

  @Property(tries = 300)
  void parserReadsBackWhatTheGrammarLetsThrough(@ForAll long seed) {
    Random random = new Random(seed);
    byte[][] texts = new byte[300 + PIECES.size()][];
    for (int b = 0; b < 256; b++) {
      texts[b] = new byte[] {(byte) b};
    }
    for (int i = 0; i < PIECES.size(); i++) {
      texts[300 + i] = PIECES.get(i).getBytes(UTF_8);
    }
    List<Integer> markers = List.of(260, 261, 262);
    TokenVocabulary vocabulary = new TokenVocabulary(texts, new int[] {270}, markers);
    AnswerShape shape =
        new AnswerShape(
            new AnswerShape.Markup("\u00F8", "\u00F9", "\u00FA"),
            false,
            null,
            List.of(new AnswerShape.Tool("f", PARAMETERS, "")),
            AnswerShape.Calls.REQUIRED,
            true);
    String written = write(new Matcher(shape.compile(), vocabulary), texts, random);
    List<ResponsePart> parts = new ArrayList<>();
    ResponseParser parser =
        new ResponseParser(List.of(ToolDefinition.of("f", "", PARAMETERS)), false, parts::add);
    parser.accept(written);
    parser.finish(false);
    List<JsonNode> expected = expected(written);
    assertThat(parts).as(written).hasSize(expected.size());
    for (int i = 0; i < expected.size(); i++) {
      assertThat(parts.get(i)).as(written).isInstanceOf(ResponsePart.CalledTool.class);
      assertThat(((ResponsePart.CalledTool) parts.get(i)).call().arguments())
          .as(written)
          .isEqualTo(expected.get(i));
    }
  }

  /** A random way through the grammar that prefers pieces to single bytes. */
  private static String write(Matcher matcher, byte[][] texts, Random random) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    for (int step = 0; step < 2000; step++) {
      if (matcher.isComplete() && (matcher.isFinished() || random.nextBoolean())) {
        return out.toString(UTF_8);
      }
      List<Integer> allowed = new ArrayList<>();
      for (int i = 0; i < PIECES.size(); i++) {
        if (matcher.allows(300 + i)) {
          allowed.add(300 + i);
        }
      }
      if (allowed.isEmpty() || random.nextInt(4) == 0) {
        for (int token = 10; token < 262; token++) {
          if (token < 0x7F || token >= 260 ? matcher.allows(token) : false) {
            allowed.add(token);
          }
        }
      }
      int token = allowed.get(random.nextInt(allowed.size()));
      matcher.advance(token);
      if (token == 260 || token == 261) {
        out.writeBytes((token == 260 ? "<tool_call>" : "</tool_call>").getBytes(UTF_8));
      } else {
        out.writeBytes(texts[token]);
      }
    }
    throw new AssertionError("No end after 2000 tokens");
  }

  /**
   * Takes the format apart by its line breaks, which JSON values do not have and texts cannot fake.
   */
  private static List<JsonNode> expected(String written) {
    List<JsonNode> calls = new ArrayList<>();
    String rest = written;
    while (rest.startsWith("<tool_call>\n<function=f>\n") || rest.startsWith("\n<tool_call>")) {
      rest = rest.substring(rest.indexOf("<function=f>\n") + "<function=f>\n".length());
      ObjectNode arguments = MAPPER.createObjectNode();
      while (rest.startsWith("<parameter=")) {
        String name = rest.substring("<parameter=".length(), rest.indexOf('>'));
        int start = rest.indexOf(">\n") + 2;
        int end = rest.indexOf("\n</parameter>\n", start - 1);
        String value = end < start ? "" : rest.substring(start, end);
        arguments.set(name, typed(name, value));
        rest = rest.substring(end + "\n</parameter>\n".length());
      }
      calls.add(arguments);
      rest = rest.substring("</function>\n</tool_call>".length());
    }
    assertThat(rest).isEmpty();
    return calls;
  }

  private static JsonNode typed(String name, String value) {
    boolean text =
        name.equals("text") || (name.equals("either") && Character.isLetter(value.charAt(0)));
    return text ? MAPPER.getNodeFactory().stringNode(value) : MAPPER.readTree(value);
  }
}
