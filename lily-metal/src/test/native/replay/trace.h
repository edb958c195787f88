/* A replay file, as dev.lily.metal.replay.ReplayFile writes it. */
#ifndef LILY_REPLAY_TRACE_H
#define LILY_REPLAY_TRACE_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

struct Parameter {
  std::string name, type;
  bool is_written;
};

struct Buffer {
  uint64_t length = 0;
  std::string state; /* poison, zero, large or data */
  std::vector<unsigned char> data;
};

struct Binding {
  int buffer = -1; /* or bytes */
  uint64_t offset = 0;
  std::vector<unsigned char> bytes;
};

struct Dispatch {
  std::string kernel;
  uint64_t weights, states, cache, other, flops;
  unsigned groups[3], threads[3], block_bytes;
  int segment; /* barriers before it */
  std::vector<Binding> bindings;

  uint64_t bytes() const { return weights + states + cache + other; }
};

struct Trace {
  std::string name;
  std::map<std::string, std::vector<Parameter>> kernels;
  std::vector<Buffer> buffers;
  std::vector<Dispatch> dispatches;
  int barriers = 0;
};

inline std::vector<unsigned char> from_hex(const std::string &hex, size_t from) {
  std::vector<unsigned char> bytes((hex.size() - from) / 2);
  for (size_t i = 0; i < bytes.size(); i++) {
    bytes[i] = (unsigned char)strtoul(hex.substr(from + 2 * i, 2).c_str(), nullptr, 16);
  }
  return bytes;
}

inline Trace read_trace(const std::string &path) {
  std::ifstream in(path);
  if (!in) {
    fprintf(stderr, "No trace at %s\n", path.c_str());
    exit(2);
  }
  Trace trace;
  size_t slash = path.rfind('/'), begin = slash == std::string::npos ? 0 : slash + 1;
  trace.name = path.substr(begin, path.rfind('.') - begin);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word == "kernel") {
      std::string name;
      words >> name;
      std::vector<Parameter> &parameters = trace.kernels[name];
      while (words >> word) {
        size_t type = word.find(':'), access = word.rfind(':');
        parameters.push_back({word.substr(0, type), word.substr(type + 1, access - type - 1), word.back() == 'w'});
      }
    } else if (word == "buffer") {
      Buffer buffer;
      size_t id;
      words >> id >> buffer.length >> buffer.state;
      if (words >> word) buffer.data = from_hex(word, 0);
      if (id != trace.buffers.size()) fprintf(stderr, "buffer %zu is out of order\n", id), exit(2);
      trace.buffers.push_back(buffer);
    } else if (word == "dispatch") {
      Dispatch d;
      words >> d.weights >> d.states >> d.cache >> d.other >> d.flops >> d.kernel;
      for (unsigned &n : d.groups) words >> n;
      for (unsigned &n : d.threads) words >> n;
      words >> d.block_bytes;
      while (words >> word) {
        Binding binding;
        if (word[0] == '=') {
          binding.bytes = from_hex(word, 1);
        } else {
          binding.buffer = atoi(word.c_str() + 1);
          binding.offset = strtoull(word.c_str() + word.find('+') + 1, nullptr, 10);
        }
        d.bindings.push_back(binding);
      }
      d.segment = trace.barriers;
      trace.dispatches.push_back(d);
    } else if (word == "barrier") {
      trace.barriers++;
    }
  }
  return trace;
}
#endif
