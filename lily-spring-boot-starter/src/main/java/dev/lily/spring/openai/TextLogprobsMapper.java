package dev.lily.spring.openai;

import dev.lily.engine.generation.TokenLogprob;
import dev.lily.spring.openai.dto.TextCompletion.TextLogprobs;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Log-probabilities of one choice in the older form. Not thread-safe. */
final class TextLogprobsMapper {
  private final boolean alternatives;
  private int offset;

  /**
   * @param alternatives whether likeliest tokens are reported
   * @param offset where the first token begins in the choice's text
   */
  TextLogprobsMapper(boolean alternatives, int offset) {
    this.alternatives = alternatives;
    this.offset = offset;
  }

  /** The next tokens of the choice. */
  TextLogprobs map(List<TokenLogprob> tokens) {
    List<String> texts = new ArrayList<>(tokens.size());
    List<Float> logprobs = new ArrayList<>(tokens.size());
    List<Map<String, Float>> top = new ArrayList<>(tokens.size());
    List<Integer> offsets = new ArrayList<>(tokens.size());
    for (TokenLogprob token : tokens) {
      texts.add(text(token.bytes()));
      logprobs.add(AnswerMapper.finite(token.logprob()));
      Map<String, Float> likeliest = new LinkedHashMap<>();
      token
          .top()
          .forEach(t -> likeliest.putIfAbsent(text(t.bytes()), AnswerMapper.finite(t.logprob())));
      top.add(likeliest);
      offsets.add(offset);
      offset += characters(token.bytes());
    }
    return new TextLogprobs(texts, logprobs, alternatives ? top : null, offsets);
  }

  private static String text(byte[] bytes) {
    try {
      return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
    } catch (CharacterCodingException _) {
      StringBuilder escaped = new StringBuilder("bytes:");
      for (byte value : bytes) {
        escaped.append("\\x%02x".formatted(Byte.toUnsignedInt(value)));
      }
      return escaped.toString();
    }
  }

  /** Characters that begin in these bytes. */
  private static int characters(byte[] bytes) {
    int count = 0;
    for (byte value : bytes) {
      if ((value & 0xc0) != 0x80) {
        count++;
      }
    }
    return count;
  }
}
