package dev.lily.engine.bench;

import dev.lily.engine.checkpoint.Checkpoint;
import java.util.List;
import tools.jackson.databind.JsonNode;

/** How many bytes of weights a decoded token reads. */
final class WeightTraffic {
  private static final List<String> NOT_READ =
      List.of("vision_tower.", "model.visual.", "mtp.", "language_model.mtp.");

  private WeightTraffic() {}

  /** All tensors but the embedding, and of the routed experts as many as a token chooses. */
  static long bytesPerToken(Checkpoint checkpoint) {
    JsonNode config = checkpoint.config().path("text_config");
    if (config.isMissingNode()) {
      config = checkpoint.config();
    }
    long chosen = config.path("num_experts_per_tok").asLong();
    long experts = config.path("num_experts").asLong();
    long bytes = 0;
    for (String name : checkpoint.tensorNames()) {
      if (name.contains("embed_tokens.") || NOT_READ.stream().anyMatch(name::startsWith)) {
        continue;
      }
      long size = checkpoint.tensor(name).data().byteSize();
      boolean routed = name.contains(".switch_mlp.") || name.contains(".experts.");
      bytes += routed ? size * chosen / experts : size;
    }
    return bytes;
  }
}
