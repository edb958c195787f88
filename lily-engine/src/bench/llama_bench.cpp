// Times llama_decode of a prebuilt llama.cpp on the CPU and prints one JSON object.
//
//   llama_bench LIBRARY_DIRECTORY MODEL.gguf THREADS PREFILLS CONTEXTS STEPS [FLASH_ATTENTION=-1]
//
// PREFILLS and CONTEXTS are lists such as 128,512,2048. Prefill: an empty sequence, all its tokens by
// llama_decode in batches of 2,048 (ubatch 512). Decode: behind a prefill to the context, STEPS single
// tokens; the mean rate, as of any consumer that waits for the whole answer. Weights are repacked at load,
// which is llama.cpp's default and its fastest form.
//
// GREEDY=5,9,100,7 in the environment prints a greedy continuation of these tokens with its logits instead,
// to compare engines on one model.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "ggml-backend.h"
#include "llama.h"

using Tokens = std::vector<llama_token>;

static double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static std::vector<int> numbers(const std::string &text) {
  std::vector<int> values;
  std::stringstream stream(text);
  for (std::string item; std::getline(stream, item, ',');) values.push_back(std::stoi(item));
  return values;
}

[[noreturn]] static void fail(const char *what) {
  fprintf(stderr, "llama_bench: %s failed\n", what);
  exit(1);
}

static void errorsOnly(ggml_log_level level, const char *text, void *) {
  if (level >= GGML_LOG_LEVEL_ERROR) fputs(text, stderr);
}

static void run(llama_context *context, Tokens &tokens, int from, int count) {
  constexpr int kBatch = 2048;
  for (int i = 0; i < count; i += kBatch) {
    int n = std::min(kBatch, count - i);
    if (llama_decode(context, llama_batch_get_one(tokens.data() + from + i, n))) fail("llama_decode");
  }
  llama_synchronize(context);
}

static void printGreedy(llama_context *context, int vocabulary, Tokens tokens) {
  run(context, tokens, 0, static_cast<int>(tokens.size()));
  for (int i = 0; i < 16; i++) {
    const float *logits = llama_get_logits_ith(context, -1);
    llama_token best = std::max_element(logits, logits + vocabulary) - logits;
    printf("%d:%.5f ", best, logits[best]);
    if (llama_decode(context, llama_batch_get_one(&best, 1))) fail("llama_decode");
  }
  printf("\n");
}

int main(int argc, char **argv) {
  if (argc < 7) {
    fprintf(stderr, "llama_bench LIBRARY_DIRECTORY MODEL THREADS PREFILLS CONTEXTS STEPS [FLASH_ATTENTION]\n");
    return 2;
  }
  int threads = std::stoi(argv[3]);
  std::vector<int> prefills = numbers(argv[4]);
  std::vector<int> contexts = numbers(argv[5]);
  int steps = std::stoi(argv[6]);
  int flashAttention = argc > 7 ? std::stoi(argv[7]) : -1;
  std::sort(contexts.begin(), contexts.end());

  llama_log_set(errorsOnly, nullptr);
  ggml_backend_load_all_from_path(argv[1]);
  llama_backend_init();
  llama_model_params modelParameters = llama_model_default_params();
  modelParameters.use_extra_bufts = true;
  double started = seconds();
  llama_model *model = llama_model_load_from_file(argv[2], modelParameters);
  if (!model) fail("loading the model");
  double loadSeconds = seconds() - started;

  int longest = 256;
  for (int n : prefills) longest = std::max(longest, n);
  for (int n : contexts) longest = std::max(longest, n);
  int room = longest + (steps + 1) * static_cast<int>(contexts.size()) + 64;
  llama_context_params parameters = llama_context_default_params();
  parameters.n_ctx = room;
  parameters.n_batch = 2048;
  parameters.n_ubatch = 512;
  parameters.n_threads = parameters.n_threads_batch = threads;
  parameters.no_perf = true;
  parameters.flash_attn_type = static_cast<llama_flash_attn_type>(flashAttention);
  llama_context *context = llama_init_from_model(model, parameters);
  if (!context) fail("opening a context");

  int vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
  if (const char *greedy = getenv("GREEDY")) {
    std::vector<int> ids = numbers(greedy);
    printGreedy(context, vocabulary, Tokens(ids.begin(), ids.end()));
    return 0;
  }
  std::mt19937 random(7);
  Tokens tokens(room);
  for (llama_token &token : tokens) token = random() % (vocabulary - 300);
  llama_memory_t memory = llama_get_memory(context);
  run(context, tokens, 0, 64);
  run(context, tokens, 64, 1);

  printf("{\"loadSeconds\": %.2f", loadSeconds);
  for (int n : prefills) {
    llama_memory_clear(memory, true);
    double start = seconds();
    run(context, tokens, 0, n);
    printf(", \"prefill%d\": %.3f", n, n / (seconds() - start));
  }
  llama_memory_clear(memory, true);
  int position = 0;
  for (int n : contexts) {
    if (n > position) run(context, tokens, position, n - position);
    position = std::max(position, n);
    run(context, tokens, position++, 1);
    double start = seconds();
    for (int i = 0; i < steps; i++) run(context, tokens, position++, 1);
    printf(", \"decode%d\": %.3f", n, steps / (seconds() - start));
  }
  printf("}\n");
  llama_free(context);
  llama_model_free(model);
}
