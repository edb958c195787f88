package dev.lily.engine.tokenizer;

import java.nio.file.Path;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;

/**
 * Byte-level BPE of a checkpoint's {@code tokenizer.json}: added tokens are split off first, the
 * rest is brought to Unicode form C, cut into pieces, and merged within each piece in the order of
 * the merge list. Nothing is put before or after the text. Immutable and thread-safe.
 */
public final class Tokenizer {
  /** Three bytes for each of so many chars still have an int for a count. */
  private static final int MAX_TEXT_LENGTH = 1 << 28;

  private final Vocabulary vocabulary;
  private final AddedTokens addedTokens;
  private final MergeTable merges;
  private final int[] byteIds;

  Tokenizer(Vocabulary vocabulary, AddedTokens addedTokens, MergeTable merges, int[] byteIds) {
    this.vocabulary = vocabulary;
    this.addedTokens = addedTokens;
    this.merges = merges;
    this.byteIds = byteIds;
  }

  /**
   * Reads {@code tokenizer.json} and, where present, the added tokens of {@code
   * tokenizer_config.json}.
   *
   * @throws TokenizerException if they are missing, damaged or of another kind
   */
  public static Tokenizer read(Path directory) {
    return TokenizerReader.read(directory);
  }

  /**
   * Encodes text; added tokens are recognised everywhere. Lone surrogates count as U+FFFD.
   *
   * @throws TokenizerException if the text is longer than 2<sup>28</sup> chars
   */
  public int[] encode(String text) {
    return encode(text, new int[0]);
  }

  /**
   * Encodes text in which some ranges were typed by somebody else.
   *
   * @param literalRanges pairs {@code start, end} of char offsets, ascending; an added token that
   *     overlaps such a range is ordinary text there, so that user text never becomes a control
   *     token. Otherwise the ranges change nothing: text is merged across their borders. Empty
   *     ranges are allowed and have no effect
   * @throws IllegalArgumentException if the ranges are not pairs, overlap, descend or leave the
   *     text
   * @throws TokenizerException if the text is longer than 2<sup>28</sup> chars
   */
  public int[] encode(String text, int[] literalRanges) {
    if (text.length() > MAX_TEXT_LENGTH) {
      throw new TokenizerException(
          "A text of %,d chars is too long to encode; the limit is %,d. Cut it."
              .formatted(text.length(), MAX_TEXT_LENGTH));
    }
    requireRanges(literalRanges, text.length());
    BytePairEncoder encoder = new BytePairEncoder(merges, byteIds);
    int encoded = 0;
    int range = 0;
    int at = 0;
    while (at < text.length()) {
      while (range < literalRanges.length
          && (literalRanges[range + 1] <= at || literalRanges[range + 1] == literalRanges[range])) {
        range += 2;
      }
      int limit = range < literalRanges.length ? literalRanges[range] : text.length();
      if (limit <= at) {
        at = literalRanges[range + 1];
        continue;
      }
      AddedToken token = addedTokens.longestAt(text, at, limit);
      if (token == null) {
        at++;
      } else {
        encodeOrdinary(text, encoded, at, encoder);
        encoder.append(token.id());
        at += token.content().length();
        encoded = at;
      }
    }
    encodeOrdinary(text, encoded, text.length(), encoder);
    return encoder.toArray();
  }

  /**
   * The text of ids, with U+FFFD for each maximal invalid part of UTF-8. Added tokens become their
   * literal text, special ones too.
   *
   * @throws TokenizerException if no token has one of the ids, or the text is too long for a string
   */
  public String decode(int[] ids) {
    long length = 0;
    for (int id : ids) {
      length += bytes(id).length;
    }
    if (length > Integer.MAX_VALUE - 8) {
      throw new TokenizerException(
          "%,d tokens give %,d bytes of text, more than a string can hold. Decode fewer at a time."
              .formatted(ids.length, length));
    }
    byte[] text = new byte[(int) length];
    int end = 0;
    for (int id : ids) {
      byte[] bytes = bytes(id);
      System.arraycopy(bytes, 0, text, end, bytes.length);
      end += bytes.length;
    }
    Utf8Decoder decoder = new Utf8Decoder();
    return decoder.decode(text) + decoder.finish();
  }

  /**
   * UTF-8 bytes of a token, which need not be whole characters; the literal text of an added one.
   * Not copied: do not change.
   *
   * @throws TokenizerException if no token has this id, as in the padding of a model's vocabulary
   */
  public byte[] bytes(int id) {
    return vocabulary.bytes(id);
  }

  /**
   * Whether a token is flagged special; such tokens never appear in answers.
   *
   * @throws TokenizerException if no token has this id
   */
  public boolean isSpecial(int id) {
    return vocabulary.isSpecial(id);
  }

  /** Whether an id is a piece of ordinary text: in use, and no added token. */
  public boolean isText(int id) {
    return vocabulary.isUsed(id) && !addedTokens.contains(id);
  }

  /** Id of an added token, special or not, by its literal text. */
  public OptionalInt addedToken(String text) {
    @Nullable AddedToken token = addedTokens.get(text);
    return token == null ? OptionalInt.empty() : OptionalInt.of(token.id());
  }

  /** One more than the largest id in use. */
  public int vocabularySize() {
    return vocabulary.size();
  }

  private static void encodeOrdinary(String text, int start, int end, BytePairEncoder encoder) {
    String normalized = Nfc.normalize(text.substring(start, end));
    for (int at = 0; at < normalized.length(); ) {
      int pieceEnd = PreTokenizer.end(normalized, at);
      encoder.appendPiece(normalized, at, pieceEnd);
      at = pieceEnd;
    }
  }

  private static void requireRanges(int[] ranges, int textLength) {
    if (ranges.length % 2 != 0) {
      throw new IllegalArgumentException(
          "literalRanges holds " + ranges.length + " offsets; they must be pairs of start and end");
    }
    int previous = 0;
    for (int offset : ranges) {
      if (offset < previous || offset > textLength) {
        throw new IllegalArgumentException(
            "literalRanges holds offset %d after %d in a text of %d chars;"
                    .formatted(offset, previous, textLength)
                + " offsets must ascend and stay in the text");
      }
      previous = offset;
    }
  }
}
