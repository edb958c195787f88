package dev.lily.engine.bench;

import dev.lily.engine.EngineOptions;
import dev.lily.engine.LoadedModel;
import dev.lily.engine.ModelInfo;
import dev.lily.engine.ModelLoader;
import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.KeyValueType;
import dev.lily.engine.checkpoint.Checkpoint;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.ObjectNode;

/**
 * Measures prefill and decode of any checkpoint on any back end.
 *
 * <p>Contract: in process, one sequence, greedy. Prompt token {@code i} is {@code (i * 2654435761
 * mod 2^32) mod vocabulary}. Each context length is first run once in exactly the measured shape;
 * then one prefill and {@link Settings#decodeSteps} decode steps are timed. Prefill ends when the
 * first token is on the host. The digest is FNV-1a over the tokens: equal digests mean equal
 * answers.
 */
public final class LilyBench {
  private static final String USAGE =
      """
      Usage: LilyBench --model DIRECTORY [--backend auto] [--kernels auto|vector|scalar] [--threads 0]
                       [--kv-cache bf16|int8|fp32] [--contexts 128,512,2048] [--chunk 256]
                       [--decode-steps 64] [--rounds 1] [--weights auto|mapped|packed]
                       [--ceilings false|true] [--json FILE]""";

  /** What to measure. */
  record Settings(
      Path model,
      String backend,
      BackendOptions backendOptions,
      KeyValueType kvCache,
      List<Integer> contexts,
      int chunk,
      int decodeSteps,
      int rounds,
      boolean ceilings,
      @Nullable Path json) {}

  /**
   * One measured row.
   *
   * @param digest FNV-1a 64 of the generated tokens
   */
  record Row(
      int context, double prefillTokensPerSecond, double decodeTokensPerSecond, long digest) {}

  private LilyBench() {}

  /** Runs the benchmark; exits with 2 on bad arguments. */
  public static void main(String[] arguments) throws IOException {
    Settings settings;
    try {
      settings = parse(arguments);
    } catch (IllegalArgumentException e) {
      System.err.println(e.getMessage());
      System.err.println(USAGE);
      System.exit(2);
      return;
    }
    run(settings, new PrintStream(System.out, true, StandardCharsets.UTF_8));
  }

  static List<Row> run(Settings settings, PrintStream out) throws IOException {
    int longest = settings.contexts.stream().max(Integer::compare).orElseThrow();
    EngineOptions options =
        EngineOptions.builder(settings.model)
            .backend(settings.backend)
            .backendOptions(settings.backendOptions)
            .kvCache(settings.kvCache)
            .contextLength(longest + settings.decodeSteps + 1)
            .maxSessions(1)
            .prefillChunk(settings.chunk)
            .build();
    List<Row> rows = new ArrayList<>();
    ModelInfo info;
    try (LoadedModel loaded = ModelLoader.load(options)) {
      info = loaded.info();
      out.printf(
          "%s on %s: %s, %s%n", info.name(), info.backend(), info.device(), info.deviceDetail());
      out.printf("%8s %14s %14s  %s%n", "context", "prefill tok/s", "decode tok/s", "digest");
      BenchRun run = new BenchRun(loaded.model(), settings.decodeSteps);
      for (int round = 0; round < settings.rounds; round++) {
        for (int context : settings.contexts) {
          run.measure(context);
          Row row = run.measure(context);
          rows.add(row);
          out.printf(
              Locale.ROOT,
              "%8d %14.1f %14.2f  %016x%n",
              row.context,
              row.prefillTokensPerSecond,
              row.decodeTokensPerSecond,
              row.digest);
        }
      }
    }
    if (settings.ceilings) {
      reportCeilings(settings, rows, out);
    }
    if (settings.json != null) {
      Files.writeString(settings.json, json(settings, info, rows).toPrettyString());
    }
    return rows;
  }

  /** Decode of the shortest context as a share of what the memory gives. */
  private static void reportCeilings(Settings settings, List<Row> rows, PrintStream out) {
    long bytes;
    try (Checkpoint checkpoint = Checkpoint.open(settings.model)) {
      bytes = WeightTraffic.bytesPerToken(checkpoint);
    }
    int asked = settings.backendOptions.threads();
    int threads = asked > 0 ? asked : Runtime.getRuntime().availableProcessors();
    MachineBench.Ceiling ceiling = MachineBench.measure(threads);
    int shortest = rows.stream().mapToInt(Row::context).min().orElseThrow();
    double best =
        rows.stream()
            .filter(row -> row.context == shortest)
            .mapToDouble(Row::decodeTokensPerSecond)
            .max()
            .orElseThrow();
    double gigabytes = best * bytes / 1e9;
    out.printf(
        Locale.ROOT,
        "weights %.1f MB a token: %.1f GB/s at the best decode behind %d, %.0f %% of the %.1f GB/s that %d threads read (best %.1f; %.0f GFLOP/s, best %.0f)%n",
        bytes / 1e6,
        gigabytes,
        shortest,
        100 * gigabytes / ceiling.readGigabytes(),
        ceiling.readGigabytes(),
        threads,
        ceiling.bestReadGigabytes(),
        ceiling.gigaflops(),
        ceiling.bestGigaflops());
  }

  private static ObjectNode json(Settings settings, ModelInfo info, List<Row> rows) {
    ObjectNode json = JsonMapper.shared().createObjectNode();
    json.put("model", info.name());
    json.put("backend", info.backend());
    json.put("device", info.device());
    json.put("deviceDetail", info.deviceDetail());
    json.put("kvCache", settings.kvCache.word());
    json.put("chunk", settings.chunk);
    json.put("decodeSteps", settings.decodeSteps);
    ArrayNode array = json.putArray("rows");
    for (Row row : rows) {
      array
          .addObject()
          .put("context", row.context)
          .put("prefillTokensPerSecond", row.prefillTokensPerSecond)
          .put("decodeTokensPerSecond", row.decodeTokensPerSecond)
          .put("digest", "%016x".formatted(row.digest));
    }
    return json;
  }

  static Settings parse(String[] arguments) {
    @Nullable Path model = null;
    @Nullable Path json = null;
    String backend = "auto";
    String kernels = "auto";
    String weights = "auto";
    boolean ceilings = false;
    int threads = 0;
    KeyValueType kvCache = KeyValueType.BF16;
    List<Integer> contexts = List.of(128, 512, 2048);
    int chunk = 256;
    int decodeSteps = 64;
    int rounds = 1;
    for (int i = 0; i < arguments.length; i += 2) {
      String name = arguments[i];
      if (i + 1 == arguments.length) {
        throw new IllegalArgumentException(name + " needs a value");
      }
      String value = arguments[i + 1];
      switch (name) {
        case "--model" -> model = Path.of(value);
        case "--json" -> json = Path.of(value);
        case "--backend" -> backend = value;
        case "--kernels" -> kernels = value;
        case "--weights" -> weights = value;
        case "--ceilings" -> ceilings = Boolean.parseBoolean(value);
        case "--threads" -> threads = number(name, value, 0);
        case "--kv-cache" -> kvCache = keyValueType(name, value);
        case "--contexts" ->
            contexts = Arrays.stream(value.split(",")).map(c -> number(name, c, 1)).toList();
        case "--chunk" -> chunk = number(name, value, 1);
        case "--decode-steps" -> decodeSteps = number(name, value, 1);
        case "--rounds" -> rounds = number(name, value, 1);
        default -> throw new IllegalArgumentException("Unknown option " + name);
      }
    }
    if (model == null) {
      throw new IllegalArgumentException("--model is missing");
    }
    return new Settings(
        model,
        backend,
        BackendOptions.DEFAULT.withCpu(threads, kernels, weights),
        kvCache,
        contexts,
        chunk,
        decodeSteps,
        rounds,
        ceilings,
        json);
  }

  private static KeyValueType keyValueType(String name, String word) {
    try {
      return KeyValueType.of(word);
    } catch (BackendException e) {
      throw new IllegalArgumentException(name + ": " + e.getMessage(), e);
    }
  }

  private static int number(String name, String value, int min) {
    try {
      int number = Integer.parseInt(value.strip());
      if (number >= min) {
        return number;
      }
    } catch (NumberFormatException e) {
      // Falls through to the message below, which also covers numbers that are too small.
    }
    throw new IllegalArgumentException(
        name + " is '" + value + "'; it must be a whole number of at least " + min);
  }
}
