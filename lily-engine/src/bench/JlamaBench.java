import com.github.tjake.jlama.model.AbstractModel;
import com.github.tjake.jlama.model.ModelSupport;
import com.github.tjake.jlama.safetensors.DType;
import com.github.tjake.jlama.safetensors.SafeTensorSupport;
import com.github.tjake.jlama.tensor.AbstractTensor;
import com.github.tjake.jlama.tensor.KvBufferCache;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.Random;
import java.util.UUID;

/**
 * Times Jlama on two threads and prints one JSON object: {@code JlamaBench MODEL_DIRECTORY PREFILL
 * STEPS}. Weights are its own 4-bit format (written once beside the model), activations 8 bit,
 * which is its fastest mode. Two rounds warm up, the third is timed.
 */
public final class JlamaBench {
  private static final int THREADS = 2;
  private static final int WARM_UP = 2;

  public static void main(String[] arguments) throws Exception {
    Path source = Path.of(arguments[0]);
    int prefill = Integer.parseInt(arguments[1]);
    int steps = Integer.parseInt(arguments[2]);
    Path quantized = Path.of(source + "-q4");
    if (!Files.exists(quantized.resolve("config.json"))) {
      SafeTensorSupport.quantizeModel(
          source,
          DType.Q4,
          new String[] {"model.embed_tokens", "model.norm"},
          null,
          Optional.of(quantized));
    }
    AbstractModel model =
        ModelSupport.loadModel(
            quantized.toFile(),
            new java.io.File(System.getProperty("java.io.tmpdir")),
            DType.F32,
            DType.I8,
            Optional.empty(),
            Optional.of(THREADS));
    var field = AbstractModel.class.getDeclaredField("kvBufferCache");
    field.setAccessible(true);
    KvBufferCache cache = (KvBufferCache) field.get(model);
    int[] tokens = new Random(1).ints(prefill, 0, 30_000).toArray();
    for (int round = 0; ; round++) {
      var kv = cache.getKvBuffer(UUID.randomUUID());
      long start = System.nanoTime();
      model.batchForward(tokens, 0, kv);
      long prefilled = System.nanoTime();
      AbstractTensor logits = model.makeDenseTensor(model.getConfig().vocabularySize);
      for (int i = 0; i < steps; i++) {
        AbstractTensor hidden = model.forward(tokens[i % prefill], prefill + i, kv, Optional.empty());
        model.sample(hidden, 0f, 0.5f, logits);
      }
      long decoded = System.nanoTime();
      if (round == WARM_UP) {
        System.out.printf(
            "{\"prefill%d\": %.3f, \"decode%d\": %.3f}%n",
            prefill,
            prefill / ((prefilled - start) / 1e9),
            prefill,
            steps / ((decoded - prefilled) / 1e9));
        System.exit(0);
      }
    }
  }
}
