package dev.lily.cookbook;

import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;
import org.springframework.ai.document.Document;
import org.springframework.ai.embedding.Embedding;
import org.springframework.ai.embedding.EmbeddingModel;
import org.springframework.ai.embedding.EmbeddingRequest;
import org.springframework.ai.embedding.EmbeddingResponse;

/** Counts words into buckets: texts that share words are near each other. Downloads nothing. */
// tag::embeddings[]
class WordCounts implements EmbeddingModel {
  private static final int BUCKETS = 64;

  @Override
  public EmbeddingResponse call(EmbeddingRequest request) {
    List<String> texts = request.getInstructions();
    return new EmbeddingResponse(
        IntStream.range(0, texts.size())
            .mapToObj(i -> new Embedding(counts(texts.get(i)), i))
            .toList());
  }

  @Override
  public float[] embed(Document document) {
    return counts(String.valueOf(document.getText()));
  }

  private static float[] counts(String text) {
    float[] counts = new float[BUCKETS];
    for (String word : text.toLowerCase(Locale.ROOT).split("\\W+")) {
      counts[Math.floorMod(word.hashCode(), BUCKETS)]++;
    }
    return counts;
  }
}
// end::embeddings[]
