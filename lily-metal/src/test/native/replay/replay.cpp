/*
 * Times recorded passes on an NVIDIA GPU: replay OUTPUT MODULE... -- TRACE...
 *
 * MODULE: PTX or cubin with an entry per kernel, which takes a 64-bit address for each buffer index.
 * For each trace: each kernel by itself, with the dispatches of one pass in flight at once on distinct memory (repeated
 * over more distinct memory until far more than the caches hold is read), so that launches are hidden; then the pass
 * in its own order. Prints a table for each trace and writes OUTPUT/replay.md and OUTPUT/replay.json.
 * Environment: LILY_REPLAY_ONLY, a part of a kernel's name: times only such kernels.
 */
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <random>

#include "cuda.h"
#include "trace.h"

static const size_t PATTERN = 64 << 20;
static const uint64_t WORKING_SET = 768ull << 20; /* bytes that the instances of a kernel move at least, if they can */
static const size_t MAX_INSTANCES = 2000;
static const uint64_t WHOLE = 1ull << 30;      /* buffers up to this are cloned whole */
static const uint64_t MAX_CLONES = 24ull << 30; /* bytes */
static const double SECONDS_OF_A_MEASUREMENT = 0.1;
static const int MIN_ROUNDS = 5, MAX_ROUNDS = 40;

static cuda::Stream stream;
static cuda::Event begin_event, end_event;

static double median_seconds(const std::function<void()> &work) {
  std::vector<float> times;
  double total = 0;
  for (int round = -2; round < MAX_ROUNDS && (round < MIN_ROUNDS || total < SECONDS_OF_A_MEASUREMENT); round++) {
    CUDA(event_record, begin_event, stream);
    work();
    CUDA(event_record, end_event, stream);
    CUDA(event_synchronize, end_event);
    float ms;
    CUDA(event_elapsed, &ms, begin_event, end_event);
    if (round < 0) continue; /* warm-up */
    times.push_back(ms);
    total += ms * 1e-3;
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2] * 1e-3;
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

static cuda::Pointer allocate(uint64_t bytes) {
  cuda::Pointer p;
  CUDA(allocate, &p, std::max<uint64_t>(bytes, 256));
  return p;
}

static uint16_t to_bf16(float f) {
  uint32_t bits;
  memcpy(&bits, &f, 4);
  return (uint16_t)((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

/* Random contents by type: 64 MiB of each, repeated over memory. Scales and biases give weights of mean 0. */
class Patterns {
 public:
  Patterns() {
    std::vector<uint32_t> words(PATTERN / 4);
    std::mt19937 random(35);
    for (uint32_t &w : words) w = random();
    put("u32", words.data());
    std::vector<float> normal(1 << 20);
    std::normal_distribution<float> distribution;
    for (float &f : normal) f = distribution(random);
    std::vector<float> f32(PATTERN / 4);
    std::vector<uint16_t> bf16(PATTERN / 2), scales(PATTERN / 2), biases(PATTERN / 2);
    for (float &f : f32) f = normal[random() % normal.size()];
    put("f32", f32.data());
    for (uint16_t &h : bf16) h = to_bf16(normal[random() % normal.size()]);
    put("bf16", bf16.data());
    for (size_t i = 0; i < scales.size(); i++) {
      float scale = 0.003f + 0.004f * (float)(random() % 1024) / 1024;
      scales[i] = to_bf16(scale);
      biases[i] = to_bf16(-7.5f * scale);
    }
    put("scales", scales.data());
    put("biases", biases.data());
  }

  void fill(cuda::Pointer to, uint64_t bytes, const std::string &type) const {
    cuda::Pointer from = patterns.at(type);
    for (uint64_t at = 0; at < bytes; at += PATTERN) CUDA(copy, to + at, from, std::min<uint64_t>(PATTERN, bytes - at), stream);
  }

 private:
  void put(const std::string &type, const void *host) {
    cuda::Pointer p = allocate(PATTERN);
    CUDA(upload, p, host, PATTERN);
    patterns[type] = p;
  }
  std::map<std::string, cuda::Pointer> patterns;
};

static std::string fill_type(const Parameter &parameter) {
  if (parameter.type == "bf16" && parameter.name.find("scales") != std::string::npos) return "scales";
  if (parameter.type == "bf16" && parameter.name.find("biases") != std::string::npos) return "biases";
  if (parameter.type == "bf16" || parameter.type == "f32") return parameter.type;
  return "u32";
}

/* The buffers of a trace on the device, cut at every offset that something is bound to. */
class Memory {
 public:
  Memory(const Trace &trace, const Patterns &patterns) : trace(trace), cuts(trace.buffers.size()) {
    for (const Dispatch &d : trace.dispatches) {
      const std::vector<Parameter> &parameters = trace.kernels.at(d.kernel);
      for (size_t i = 0; i < d.bindings.size(); i++) {
        const Binding &b = d.bindings[i];
        if (b.buffer < 0) continue;
        std::string type = fill_type(parameters[i]), &known = cuts[(size_t)b.buffer][b.offset];
        /* What is absent is bound to anything: the wider type is the real one. */
        if (known.empty() || type == "f32") known = type;
      }
    }
    for (size_t i = 0; i < trace.buffers.size(); i++) {
      const Buffer &buffer = trace.buffers[i];
      cuda::Pointer p = allocate(buffer.length);
      bases.push_back(p);
      if (buffer.state == "data") {
        CUDA(upload, p, buffer.data.data(), buffer.data.size());
      } else if (buffer.state == "zero") {
        CUDA(clear, p, 0, buffer.length);
      } else {
        for (auto cut = cuts[i].begin(); cut != cuts[i].end(); ++cut) {
          patterns.fill(p + cut->first, end_of(i, cut->first) - cut->first, cut->second);
        }
      }
    }
    CUDA(synchronize);
  }

  ~Memory() {
    drop_clones();
    for (cuda::Pointer p : bases) CUDA(release, p);
    for (cuda::Pointer p : constants) CUDA(release, p);
  }

  cuda::Pointer address(const Binding &b, int replica) {
    if (b.buffer < 0) return constant(b.bytes);
    if (replica == 0) return bases[(size_t)b.buffer] + b.offset;
    Part part = part_of(b);
    cuda::Pointer &clone = clones[std::make_pair(part, replica)];
    if (!clone) {
      clone = clone_memory + clones_used;
      clones_used += (part.size + 255) / 256 * 256;
      CUDA(copy, clone, bases[part.id] + part.from, part.size, stream);
    }
    return clone + b.offset - part.from;
  }

  /* Bytes that another replica of some dispatches takes. */
  uint64_t replica_bytes(const std::vector<const Dispatch *> &dispatches) const {
    std::map<Part, bool> parts;
    uint64_t bytes = 0;
    for (const Dispatch *d : dispatches) {
      for (const Binding &b : d->bindings) {
        if (b.buffer < 0 || parts[part_of(b)]) continue;
        parts[part_of(b)] = true;
        bytes += (part_of(b).size + 255) / 256 * 256;
      }
    }
    return bytes;
  }
  void reserve_clones(uint64_t bytes) { clone_memory = allocate(bytes); }

  void drop_clones() {
    CUDA(synchronize);
    if (clone_memory) CUDA(release, clone_memory);
    clone_memory = clones_used = 0;
    clones.clear();
  }

  cuda::Pointer base(int buffer) const { return bases[(size_t)buffer]; }

 private:
  struct Part {
    size_t id;
    uint64_t from, size;
    bool operator<(const Part &p) const { return id != p.id ? id < p.id : from < p.from; }
  };

  Part part_of(const Binding &b) const {
    size_t id = (size_t)b.buffer;
    uint64_t length = trace.buffers[id].length;
    if (length <= WHOLE) return {id, 0, length};
    return {id, b.offset, std::min(end_of(id, b.offset) - b.offset, WHOLE / 2)};
  }

  uint64_t end_of(size_t id, uint64_t offset) const {
    auto next = cuts[id].upper_bound(offset);
    return next == cuts[id].end() ? trace.buffers[id].length : next->first;
  }
  cuda::Pointer constant(const std::vector<unsigned char> &bytes) {
    std::string key((const char *)bytes.data(), bytes.size());
    cuda::Pointer &p = known_constants[key];
    if (!p) {
      p = allocate(bytes.size());
      CUDA(upload, p, bytes.data(), bytes.size());
      constants.push_back(p);
    }
    return p;
  }

  const Trace &trace;
  std::vector<std::map<uint64_t, std::string>> cuts;
  std::vector<cuda::Pointer> bases, constants;
  cuda::Pointer clone_memory = 0;
  uint64_t clones_used = 0;
  std::map<std::string, cuda::Pointer> known_constants;
  std::map<std::pair<Part, int>, cuda::Pointer> clones;
};

/* ---- kernels and graphs ---------------------------------------------------------------------------------------- */

class Modules {
 public:
  void load(const std::string &path) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    if (!in) fprintf(stderr, "No module at %s\n", path.c_str()), exit(2);
    cuda::Module module;
    cuda::check(cuda::module_load(&module, text.str().c_str()), path.c_str());
    modules.push_back(module);
  }
  cuda::Function function(const std::string &name) {
    cuda::Function &f = functions[name];
    for (size_t i = 0; !f && i < modules.size(); i++) {
      if (cuda::module_function(&f, modules[i], name.c_str())) f = nullptr;
    }
    if (!f) fprintf(stderr, "No module has the kernel %s\n", name.c_str()), exit(2);
    return f;
  }

 private:
  std::vector<cuda::Module> modules;
  std::map<std::string, cuda::Function> functions;
};

class Graph {
 public:
  Graph() { CUDA(graph_create, &graph, 0); }
  ~Graph() {
    if (exec) CUDA(graph_exec_destroy, exec);
    CUDA(graph_destroy, graph);
  }
  cuda::GraphNode add(cuda::Function f, const Dispatch &d, std::vector<cuda::Pointer> arguments,
                      const std::vector<cuda::GraphNode> &after) {
    std::vector<void *> pointers;
    for (cuda::Pointer &p : arguments) pointers.push_back(&p);
    cuda::KernelNode node = {};
    node.function = f;
    for (int i = 0; i < 3; i++) node.groups[i] = d.groups[i], node.threads[i] = d.threads[i];
    node.block_bytes = d.block_bytes;
    node.parameters = pointers.data();
    cuda::GraphNode made;
    CUDA(graph_kernel, &made, graph, after.data(), after.size(), &node);
    return made;
  }
  void launch() {
    if (!exec) CUDA(graph_instantiate, &exec, graph, 0);
    CUDA(graph_launch, exec, stream);
  }

 private:
  cuda::Graph graph = nullptr;
  cuda::GraphExec exec = nullptr;
};

static std::vector<cuda::Pointer> arguments(Memory &memory, const Dispatch &d, int replica) {
  std::vector<cuda::Pointer> addresses;
  for (const Binding &b : d.bindings) addresses.push_back(memory.address(b, replica));
  return addresses;
}

/* The pass in its order: a dispatch follows all of the stretch before the last barrier, or simply the one before. */
static std::unique_ptr<Graph> whole_pass(const Trace &trace, Modules &modules, Memory &memory, bool is_serial) {
  auto graph = std::make_unique<Graph>();
  std::vector<cuda::GraphNode> before, now;
  int segment = 0;
  for (const Dispatch &d : trace.dispatches) {
    if (is_serial || d.segment != segment) {
      before = now;
      now.clear();
      segment = d.segment;
    }
    now.push_back(graph->add(modules.function(d.kernel), d, arguments(memory, d, 0), before));
  }
  return graph;
}

/* ---- results --------------------------------------------------------------------------------------------------- */

struct Row {
  std::string kernel, grid;
  size_t dispatches = 0, instances = 0, chains = 0;
  double bytes = 0, flops = 0; /* of all dispatches */
  double seconds = 0;          /* of one instance, with many in flight */
  double alone = 0;            /* of one after the other */
};

struct Result {
  std::string trace;
  size_t dispatches = 0;
  int barriers = 0;
  double bytes = 0, flops = 0, pass = 0, serial = 0, sum = 0;
  uint64_t digest = 0;
  size_t not_numbers = 0;
  std::vector<Row> rows;
};

static Row time_kernel(const std::vector<const Dispatch *> &dispatches, Modules &modules, Memory &memory) {
  Row row;
  const Dispatch &first = *dispatches[0];
  row.kernel = first.kernel;
  char grid[64];
  snprintf(grid, sizeof grid, "%ux%ux%u of %u", first.groups[0], first.groups[1], first.groups[2], first.threads[0]);
  row.grid = grid;
  row.dispatches = dispatches.size();
  for (const Dispatch *d : dispatches) {
    row.bytes += (double)d->bytes();
    row.flops += (double)d->flops;
  }
  size_t replicas = (size_t)std::ceil((double)WORKING_SET / std::max(row.bytes, 1.0));
  uint64_t replica_bytes = memory.replica_bytes(dispatches);
  replicas = std::min<size_t>(replicas, 1 + MAX_CLONES / replica_bytes);
  replicas = std::max<size_t>(1, std::min(replicas, MAX_INSTANCES / dispatches.size()));
  memory.reserve_clones((replicas - 1) * replica_bytes);
  row.instances = replicas * dispatches.size();
  cuda::Function function = modules.function(first.kernel);
  for (size_t chains : {1, 4, 16, 64}) {
    if (chains > row.instances) break;
    Graph graph;
    std::vector<std::vector<cuda::GraphNode>> last(chains);
    size_t n = 0;
    for (size_t replica = 0; replica < replicas; replica++) {
      for (const Dispatch *d : dispatches) {
        std::vector<cuda::GraphNode> &chain = last[n++ % chains];
        chain = {graph.add(function, *d, arguments(memory, *d, (int)replica), chain)};
      }
    }
    double seconds = median_seconds([&] { graph.launch(); }) / (double)row.instances;
    if (chains == 1) row.alone = seconds;
    if (row.chains == 0 || seconds < row.seconds) {
      row.seconds = seconds;
      row.chains = chains;
    }
  }
  memory.drop_clones();
  return row;
}

/* FNV-1a over the last fp32 results of a product, and how many of them are no numbers. */
static void digest(const Trace &trace, const Memory &memory, Result &result) {
  for (size_t i = trace.dispatches.size(); i-- > 0;) {
    const Dispatch &d = trace.dispatches[i];
    const std::vector<Parameter> &parameters = trace.kernels.at(d.kernel);
    for (size_t p = 0; p < parameters.size(); p++) {
      if (!parameters[p].is_written || parameters[p].type != "f32" || parameters[p].name.compare(0, 3, "out")) continue;
      uint64_t length = trace.buffers[(size_t)d.bindings[p].buffer].length;
      std::vector<uint32_t> words(length / 4);
      CUDA(download, words.data(), memory.base(d.bindings[p].buffer), words.size() * 4);
      result.digest = 0xCBF29CE484222325ull;
      for (uint32_t w : words) {
        result.digest = (result.digest ^ w) * 0x100000001B3ull;
        if ((w & 0x7F800000u) == 0x7F800000u) result.not_numbers++;
      }
      return;
    }
  }
}

static Result replay(const Trace &trace, Modules &modules, const Patterns &patterns, const char *only) {
  Result result;
  result.trace = trace.name;
  result.dispatches = trace.dispatches.size();
  result.barriers = trace.barriers;
  Memory memory(trace, patterns);
  std::unique_ptr<Graph> ordered = whole_pass(trace, modules, memory, false);
  ordered->launch();
  CUDA(synchronize);
  digest(trace, memory, result);
  result.pass = median_seconds([&] { ordered->launch(); });
  ordered.reset();
  std::unique_ptr<Graph> serial = whole_pass(trace, modules, memory, true);
  result.serial = median_seconds([&] { serial->launch(); });
  serial.reset();
  std::map<std::string, std::vector<const Dispatch *>> shapes;
  std::vector<std::string> order;
  for (const Dispatch &d : trace.dispatches) {
    result.bytes += (double)d.bytes();
    result.flops += (double)d.flops;
    std::string key = d.kernel;
    for (unsigned n : d.groups) key += " " + std::to_string(n);
    if (!shapes.count(key)) order.push_back(key);
    shapes[key].push_back(&d);
  }
  for (const std::string &key : order) {
    if (only && key.find(only) == std::string::npos) continue;
    result.rows.push_back(time_kernel(shapes[key], modules, memory));
    result.sum += result.rows.back().seconds * (double)result.rows.back().dispatches;
  }
  return result;
}

static void write_markdown(FILE *out, const Result &r, double ceiling) {
  fprintf(out, "\n**%s**: %zu dispatches, %d barriers; %.3f GB, %.3f TFLOP; digest %016lx", r.trace.c_str(), r.dispatches,
          r.barriers, r.bytes * 1e-9, r.flops * 1e-12, (unsigned long)r.digest);
  if (r.not_numbers) fprintf(out, "; %zu RESULTS ARE NO NUMBERS", r.not_numbers);
  fprintf(out, "\n\n| kernel | grid | per pass | us | MB | GB/s | of ceiling | TFLOP/s | us per pass | us alone |\n");
  fprintf(out, "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|\n");
  for (const Row &row : r.rows) {
    double n = (double)row.dispatches, bytes = row.bytes / n;
    fprintf(out, "| %s | %s | %zu | %.2f | %.3f | %.0f | %.0f %% | %.2f | %.1f | %.2f |\n", row.kernel.c_str(), row.grid.c_str(),
            row.dispatches, row.seconds * 1e6, bytes * 1e-6, bytes / row.seconds * 1e-9,
            100 * bytes / row.seconds / ceiling, row.flops / n / row.seconds * 1e-12, row.seconds * n * 1e6, row.alone * 1e6);
  }
  fprintf(out, "\nsum %.1f us; in order %.1f us, one by one %.1f us; byte floor at the copy ceiling %.1f us (sum %.2fx, in order %.2fx)\n",
          r.sum * 1e6, r.pass * 1e6, r.serial * 1e6, r.bytes / ceiling * 1e6, r.sum / (r.bytes / ceiling),
          r.pass / (r.bytes / ceiling));
}

static void write_json(FILE *out, const std::vector<Result> &results, const std::string &device, double ceiling) {
  fprintf(out, "{\"device\": \"%s\", \"copyBytesPerSecond\": %.6g, \"passes\": [", device.c_str(), ceiling);
  for (size_t i = 0; i < results.size(); i++) {
    const Result &r = results[i];
    fprintf(out,
            "%s\n {\"name\": \"%s\", \"dispatches\": %zu, \"barriers\": %d, \"bytes\": %.0f, \"flops\": %.0f, "
            "\"sumSeconds\": %.6g, \"orderedSeconds\": %.6g, \"serialSeconds\": %.6g, \"digest\": \"%016lx\", \"kernels\": [",
            i ? "," : "", r.trace.c_str(), r.dispatches, r.barriers, r.bytes, r.flops, r.sum, r.pass, r.serial,
            (unsigned long)r.digest);
    for (size_t k = 0; k < r.rows.size(); k++) {
      const Row &row = r.rows[k];
      fprintf(out,
              "%s\n  {\"kernel\": \"%s\", \"grid\": \"%s\", \"dispatches\": %zu, \"instances\": %zu, \"chains\": %zu, "
              "\"seconds\": %.6g, \"aloneSeconds\": %.6g, \"bytes\": %.0f, \"flops\": %.0f}",
              k ? "," : "", row.kernel.c_str(), row.grid.c_str(), row.dispatches, row.instances, row.chains, row.seconds, row.alone,
              row.bytes / (double)row.dispatches, row.flops / (double)row.dispatches);
    }
    fprintf(out, "]}");
  }
  fprintf(out, "\n]}\n");
}

static double copy_ceiling(const Patterns &patterns) {
  const uint64_t bytes = 4ull << 30;
  cuda::Pointer from = allocate(bytes), to = allocate(bytes);
  patterns.fill(from, bytes, "u32");
  double seconds = median_seconds([&] { CUDA(copy, to, from, bytes, stream); });
  CUDA(release, from);
  CUDA(release, to);
  return 2.0 * (double)bytes / seconds;
}

int main(int argc, char **argv) {
  if (argc < 4) {
    fprintf(stderr, "usage: replay OUTPUT MODULE... -- TRACE...\n");
    return 2;
  }
  cuda::load();
  CUDA(init, 0);
  cuda::Device device;
  cuda::Context context;
  CUDA(device_get, &device, 0);
  CUDA(context_retain, &context, device);
  CUDA(context_set, context);
  CUDA(stream_create, &stream, 0);
  CUDA(event_create, &begin_event, 0);
  CUDA(event_create, &end_event, 0);
  char name[256];
  int driver;
  CUDA(device_name, name, sizeof name, device);
  CUDA(driver_version, &driver);
  Patterns patterns;
  double ceiling = copy_ceiling(patterns);
  Modules modules;
  int i = 2;
  for (; i < argc && strcmp(argv[i], "--"); i++) modules.load(argv[i]);
  std::vector<Result> results;
  std::string folder = argv[1];
  FILE *markdown = fopen((folder + "/replay.md").c_str(), "w");
  FILE *json = fopen((folder + "/replay.json").c_str(), "w");
  if (!markdown || !json) {
    fprintf(stderr, "%s can't be written to\n", argv[1]);
    return 2;
  }
  for (FILE *out : {stdout, markdown}) {
    fprintf(out, "%s, CUDA %d.%d; copy %.0f GB/s (read and written)\n", name, driver / 1000, driver % 1000 / 10,
            ceiling * 1e-9);
  }
  for (i++; i < argc; i++) {
    Trace trace = read_trace(argv[i]);
    results.push_back(replay(trace, modules, patterns, getenv("LILY_REPLAY_ONLY")));
    write_markdown(markdown, results.back(), ceiling);
    write_markdown(stdout, results.back(), ceiling);
    fflush(stdout);
    fflush(markdown);
  }
  write_json(json, results, name, ceiling);
  return fclose(markdown) | fclose(json);
}
