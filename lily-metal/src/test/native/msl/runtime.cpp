// Runs kernels on the CPU: every thread of a threadgroup is a fiber on the calling thread. Fibers switch only at
// barriers and simdgroup functions. Between two barriers they run one after the other in an order the caller picks,
// so a kernel that lacks a barrier gives another answer in another order.
//
// The kernels are compiled with clang's load and store tracing: each access calls back here and is checked against
// the buffers, the threadgroup's memory and the fiber's stack before it happens. A second build without the tracing
// (LILY_UNTRACED) serves long runs.
#include "runtime.h"

#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "metal_language.h"
#undef device
#undef constant
#undef threadgroup
#undef thread

namespace {
constexpr uint32_t kMaxThreads = 1024;
constexpr uint32_t kMaxSimdgroups = 32;
constexpr uint32_t kLanes = 32;
constexpr size_t kStackBytes = 128 << 10;
constexpr size_t kThreadgroupBytes = 32 << 10;  // what Apple GPUs have
constexpr uint32_t kMaxVariables = 256;
constexpr size_t kIsolation = size_t(1) << 30;  // distance between two isolated buffers
constexpr uint64_t kGrain = 2;                  // bytes of one entry of the shadow memory: the smallest element
#ifdef LILY_UNTRACED
constexpr bool kTraced = false;  // the kernels are compiled without tracing
#else
constexpr bool kTraced = true;
#endif

enum class State : uint8_t { kRunning, kAtSimdgroup, kAtThreadgroup, kDone };

struct Fiber {
  void *stack_pointer;
  metal::uint3 position;
  uint32_t index;
  int line;
  State state;
  bool barrier;  // at a simdgroup barrier, which orders memory, not at a shuffle, which does not
};

// Last accesses to one grain of threadgroup memory, for races.
struct Access {
  uint64_t when;  // clock
  uint16_t thread;
};
struct Shadow {
  Access write;
  Access reads[2];  // two readers suffice: a writer is at most one of them
};

struct Buffer {
  char *address;
  uint64_t bytes;
  uint32_t access;
  std::vector<uint8_t> touched;     // lily_access bits per grain
  std::vector<uint32_t> writer;     // threadgroup + 1 that wrote the grain, for races between threadgroups
  std::vector<uint32_t> reader;
  std::vector<lily_range> reads, writes;
};

struct Run {
  const lily::Registration *kernel;
  metal::uint3 group, groups, threads;
  uint32_t group_index, num_threads, num_simdgroups, num_buffers;
  uint32_t flags;
  uint64_t random;
  Buffer buffers[LILY_MAX_BUFFERS];
  void *addresses[LILY_MAX_BUFFERS];
  Fiber fibers[kMaxThreads];
  Fiber *current;
  void *host;
  alignas(64) char exchange[kMaxSimdgroups][2][kLanes * 16];
  uint32_t phase[kMaxSimdgroups];
  uint64_t clock, threadgroup_sync, simdgroup_sync[kMaxSimdgroups];
  char *threadgroup_memory;
  size_t threadgroup_used, block_bytes;
  size_t variables[kMaxVariables];
  Shadow *shadow;
  char *stacks;
  bool failed;
  lily_report report;
};

Run run;
std::mutex one_at_a_time;
lily::Registration *registered;
std::vector<const lily::Registration *> kernels;
std::vector<lily_kernel_info> infos;
uintptr_t image_begin, image_end;

extern "C" void lily_switch(void **save, void *to);
#if defined(__x86_64__)
asm(R"(
.text
.global lily_switch
.type lily_switch,@function
lily_switch:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
.size lily_switch,.-lily_switch
)");
constexpr int kSaved = 6;
#elif defined(__aarch64__)
asm(R"(
.text
.global lily_switch
.type lily_switch,@function
lily_switch:
  sub sp, sp, #176
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #176
  ret
.size lily_switch,.-lily_switch
)");
#else
#error "fibers for this processor are not written"
#endif

void to_host() { lily_switch(&run.current->stack_pointer, run.host); }

// Records the first failure and leaves the fiber for good.
[[noreturn]] void fail_here(int status, int buffer, uint64_t offset, const char *format, ...) {
  if (!run.failed) {
    run.failed = true;
    lily_report &r = run.report;
    r.status = status;
    r.buffer = buffer;
    r.offset = offset;
    r.thread = run.current->index;
    for (int i = 0; i < 3; i++) r.group[i] = run.group[i];
    char what[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    snprintf(r.message, sizeof r.message, "%s, threadgroup (%u, %u, %u), thread %u: %s", run.kernel->info.name,
             r.group[0], r.group[1], r.group[2], r.thread, what);
  }
  for (;;) to_host();
}

void fiber_main() {
  run.kernel->run(run.addresses);
  run.current->line = 0;
  run.current->state = State::kDone;
  for (;;) to_host();
}

void prepare(Fiber &fiber) {
  // Staggered, or the tops of all stacks would compete for the same lines of the cache.
  char *top = run.stacks + (fiber.index + 1) * kStackBytes - fiber.index % 64 * 320;
  void **sp = (void **)top;
#if defined(__x86_64__)
  *--sp = nullptr;  // keeps the stack aligned as after a call
  *--sp = (void *)fiber_main;
  for (int i = 0; i < kSaved; i++) *--sp = nullptr;
#else
  sp -= 22;
  memset(sp, 0, 176);
  sp[11] = (void *)fiber_main;  // x30
#endif
  fiber.stack_pointer = sp;
  fiber.state = State::kRunning;
  fiber.line = 0;
}

uint64_t next_random() {
  run.random ^= run.random << 13;
  run.random ^= run.random >> 7;
  run.random ^= run.random << 17;
  return run.random;
}

void permute(std::vector<uint32_t> &order, uint32_t n) {
  order.resize(n);
  for (uint32_t i = 0; i < n; i++) order[i] = i;
  const uint32_t how = run.flags & LILY_ORDER_MASK;
  if (how == LILY_ORDER_DESCENDING) std::reverse(order.begin(), order.end());
  if (how == LILY_ORDER_SHUFFLED)
    for (uint32_t i = n; i > 1; i--) std::swap(order[i - 1], order[next_random() % i]);
}

const char *function_of(State state) {
  return state == State::kDone ? "has returned"
         : state == State::kAtSimdgroup ? "is at a simdgroup function" : "is at a threadgroup barrier";
}

[[gnu::cold]] void diverged(const Fiber &a, const Fiber &b) {
  run.failed = true;
  lily_report &r = run.report;
  r.status = LILY_DIVERGENCE;
  r.buffer = -1;
  r.thread = a.index;
  for (int i = 0; i < 3; i++) r.group[i] = run.group[i];
  snprintf(r.message, sizeof r.message,
           "%s, threadgroup (%u, %u, %u): thread %u %s (line %d), thread %u %s (line %d)", run.kernel->info.name,
           r.group[0], r.group[1], r.group[2], a.index, function_of(a.state), a.line, b.index, function_of(b.state),
           b.line);
}

bool release_simdgroup(uint32_t sg) {
  const uint32_t first = sg * kLanes, last = std::min(run.num_threads, first + kLanes);
  const Fiber &a = run.fibers[first];
  for (uint32_t i = first + 1; i < last; i++) {
    const Fiber &b = run.fibers[i];
    if (b.state != a.state || b.line != a.line) {
      diverged(a, b);
      return false;
    }
  }
  if (a.state == State::kAtSimdgroup) {
    if (a.barrier) {
      run.simdgroup_sync[sg] = run.clock++;
    } else {
      run.phase[sg]++;
    }
    for (uint32_t i = first; i < last; i++) run.fibers[i].state = State::kRunning;
  }
  return true;
}

// Runs one simdgroup until all its lanes are at a threadgroup barrier or done.
bool run_simdgroup(uint32_t sg, std::vector<uint32_t> &order) {
  const uint32_t first = sg * kLanes, n = std::min(run.num_threads - first, kLanes);
  while (run.fibers[first].state == State::kRunning) {
    permute(order, n);
    for (uint32_t i = 0; i < n; i++) {
      run.current = &run.fibers[first + order[i]];
      lily_switch(&run.host, run.current->stack_pointer);
      if (run.failed) return false;
    }
    if (!release_simdgroup(sg)) return false;
  }
  return true;
}

void run_group(std::vector<uint32_t> &outer, std::vector<uint32_t> &inner) {
  memset(run.threadgroup_memory, 0xFF, kThreadgroupBytes);
  if (kTraced) memset(run.shadow, 0, kThreadgroupBytes / kGrain * sizeof(Shadow));
  memset(run.variables, 0, sizeof run.variables);
  run.threadgroup_used = run.block_bytes;
  run.clock = 1;
  run.threadgroup_sync = 0;
  memset(run.simdgroup_sync, 0, sizeof run.simdgroup_sync);
  memset(run.phase, 0, sizeof run.phase);
  uint32_t index = 0;
  for (uint32_t z = 0; z < run.threads.z; z++)
    for (uint32_t y = 0; y < run.threads.y; y++)
      for (uint32_t x = 0; x < run.threads.x; x++, index++) {
        run.fibers[index].index = index;
        run.fibers[index].position = metal::uint3{x, y, z};
        prepare(run.fibers[index]);
      }
  for (;;) {
    permute(outer, run.num_simdgroups);
    for (uint32_t i = 0; i < run.num_simdgroups; i++)
      if (!run_simdgroup(outer[i], inner)) return;
    const Fiber &a = run.fibers[0];
    for (uint32_t i = kLanes; i < run.num_threads; i += kLanes)
      if (run.fibers[i].state != a.state || run.fibers[i].line != a.line) return diverged(a, run.fibers[i]);
    if (a.state == State::kDone) return;
    run.threadgroup_sync = run.clock++;
    for (uint32_t i = 0; i < run.num_threads; i++) run.fibers[i].state = State::kRunning;
  }
}

void check_threadgroup(uintptr_t offset, uint32_t bytes, int access) {
  if (offset + bytes > run.threadgroup_used)
    fail_here(LILY_OUT_OF_BOUNDS, -1, offset, "access at byte %zu of %zu bytes of threadgroup memory", (size_t)offset,
              run.threadgroup_used);
  if (access & metal::shim::atomic) return;
  const uint16_t me = (uint16_t)run.current->index;
  auto unordered = [me](const Access &other) {
    if (other.thread == me || other.when <= run.threadgroup_sync) return false;
    return other.thread / kLanes != me / kLanes || other.when > run.simdgroup_sync[me / kLanes];
  };
  for (uintptr_t at = offset / kGrain; at < (offset + bytes + kGrain - 1) / kGrain; at++) {
    Shadow &s = run.shadow[at];
    const Access *met = unordered(s.write) ? &s.write : nullptr;
    if (access & LILY_WRITE)
      for (const Access &read : s.reads)
        if (unordered(read)) met = &read;
    if (met != nullptr)
      fail_here(LILY_RACE, -1, at * kGrain, "byte %zu of threadgroup memory was %s by thread %u without a barrier since",
                (size_t)(at * kGrain), met == &s.write ? "written" : "read", met->thread);
    const Access now = {run.clock, me};
    if (access & LILY_WRITE) {
      s.write = now;
    } else {
      s.reads[s.reads[0].thread == me || !unordered(s.reads[0]) ? 0 : 1] = now;
    }
  }
}

void mark(Buffer &b, uint64_t offset, uint32_t bytes, int access, int index) {
  const uint64_t from = offset / kGrain, to = (offset + bytes + kGrain - 1) / kGrain;
  for (uint64_t at = from; at < to; at++) b.touched[at] |= access & 3;
  if (b.writer.empty() || (access & metal::shim::atomic)) return;
  const uint32_t me = run.group_index + 1;
  for (uint64_t at = from; at < to; at++) {
    const uint32_t writer = b.writer[at], reader = b.reader[at];
    if ((writer != 0 && writer != me) || ((access & LILY_WRITE) && reader != 0 && reader != me))
      fail_here(LILY_RACE, index, at * kGrain, "byte %llu of %s was %s by threadgroup number %u of the same dispatch",
                (unsigned long long)(at * kGrain), run.kernel->info.buffers[index].name,
                writer != 0 && writer != me ? "written" : "read", (writer != 0 && writer != me ? writer : reader) - 1);
    if (access & LILY_WRITE) {
      b.writer[at] = me;
    } else {
      b.reader[at] = me;
    }
  }
}

void check_access(uintptr_t address, uint32_t bytes, int access) {
  const uintptr_t stack = address - (uintptr_t)run.stacks;
  if (stack < kMaxThreads * kStackBytes) return;
  const uintptr_t local = address - (uintptr_t)run.threadgroup_memory;
  if (local < kThreadgroupBytes) return check_threadgroup(local, bytes, access);
  // Buffers may overlap (two bindings into one Metal buffer): the one that begins last before the address is meant.
  int best = -1;
  for (uint32_t i = 0; i < run.num_buffers; i++) {
    const uint64_t offset = address - (uintptr_t)run.buffers[i].address;
    if (offset + bytes <= run.buffers[i].bytes && offset < run.buffers[i].bytes &&
        (best < 0 || run.buffers[i].address > run.buffers[best].address ||
         (run.buffers[i].address == run.buffers[best].address && (run.buffers[i].access & LILY_WRITE))))
      best = (int)i;
  }
  if (best < 0) {
    if (address >= image_begin && address < image_end && access == LILY_READ) return;  // constant tables
    int nearest = 0;
    uint64_t distance = UINT64_MAX;
    for (uint32_t i = 0; i < run.num_buffers; i++) {
      const uint64_t offset = address - (uintptr_t)run.buffers[i].address;
      if (offset < distance) {
        distance = offset;
        nearest = (int)i;
      }
    }
    fail_here(LILY_OUT_OF_BOUNDS, nearest, distance, "%s of %u bytes at byte %lld of %s, which has %llu",
              access & LILY_WRITE ? "write" : "read", bytes, (long long)distance,
              run.kernel->info.buffers[nearest].name, (unsigned long long)run.buffers[nearest].bytes);
  }
  Buffer &b = run.buffers[best];
  const uint64_t offset = address - (uintptr_t)b.address;
  if (bytes <= 16 && address % bytes != 0)
    fail_here(LILY_MISALIGNED, best, offset, "%u bytes at byte %llu of %s", bytes, (unsigned long long)offset,
              run.kernel->info.buffers[best].name);
  if ((access & LILY_WRITE) && !(b.access & LILY_WRITE))
    fail_here(LILY_WRITE_TO_READ_ONLY, best, offset, "write to %s", run.kernel->info.buffers[best].name);
  if (!(run.flags & LILY_NO_TRACKING)) mark(b, offset, bytes, access, best);
}

int find_image(dl_phdr_info *info, size_t, void *) {
  const uintptr_t here = (uintptr_t)&find_image;
  uintptr_t low = UINTPTR_MAX, high = 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
    const uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    low = std::min(low, begin);
    high = std::max(high, begin + info->dlpi_phdr[i].p_memsz);
  }
  if (here < low || here >= high) return 0;
  image_begin = low;
  image_end = high;
  return 1;
}

void *reserve(size_t bytes) {
  void *p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) abort();
  return p;
}

void set_up() {
  if (run.stacks != nullptr) return;
  run.stacks = (char *)reserve(kMaxThreads * kStackBytes);
  run.threadgroup_memory = (char *)reserve(kThreadgroupBytes);
  run.shadow = (Shadow *)reserve(kThreadgroupBytes / kGrain * sizeof(Shadow));
  dl_iterate_phdr(find_image, nullptr);
}

void collect(const Buffer &b, uint8_t bit, std::vector<lily_range> &out) {
  out.clear();
  const size_t n = b.touched.size();
  for (size_t i = 0; i < n;) {
    if (!(b.touched[i] & bit)) {
      i++;
      continue;
    }
    const size_t from = i;
    while (i < n && (b.touched[i] & bit)) i++;
    out.push_back({from * kGrain, std::min<uint64_t>(i * kGrain, b.bytes)});
  }
}

int refuse(lily_report *report, int status, const char *format, ...) {
  if (report != nullptr) {
    memset(report, 0, sizeof *report);
    report->status = status;
    report->buffer = -1;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(report->message, sizeof report->message, format, arguments);
    va_end(arguments);
  }
  return status;
}

const lily::Registration *find(const char *name) {
  for (const lily::Registration *k : kernels)
    if (strcmp(k->info.name, name) == 0) return k;
  return nullptr;
}

// Sorts what the constructors registered; the table is then fixed.
struct Table {
  Table() {
    for (const lily::Registration *k = registered; k != nullptr; k = k->next) kernels.push_back(k);
    std::sort(kernels.begin(), kernels.end(),
              [](auto *a, auto *b) { return strcmp(a->info.name, b->info.name) < 0; });
    for (const lily::Registration *k : kernels) infos.push_back(k->info);
  }
};
const Table &table() {
  static const Table t;
  return t;
}
}  // namespace

void lily::add(Registration *registration) {
  registration->next = registered;
  registered = registration;
}

namespace metal::shim {
uint3 thread_position_in_threadgroup() { return run.current->position; }
uint3 threadgroup_position_in_grid() { return run.group; }
uint3 threads_per_threadgroup() { return run.threads; }
uint3 threadgroups_per_grid() { return run.groups; }
uint3 thread_position_in_grid() { return run.group * run.threads + run.current->position; }
uint3 threads_per_grid() { return run.groups * run.threads; }
uint thread_index_in_threadgroup() { return run.current->index; }
uint thread_index_in_simdgroup() { return run.current->index % kLanes; }
uint simdgroup_index_in_threadgroup() { return run.current->index / kLanes; }
uint simdgroups_per_threadgroup() { return run.num_simdgroups; }
uint threads_per_simdgroup() { return kLanes; }

void *threadgroup_variable(int id, size_t bytes, size_t alignment) {
  if (id < 0 || id >= (int)kMaxVariables) abort();
  if (run.variables[id] == 0) {
    const size_t at = (run.threadgroup_used + 15) / 16 * 16;
    if (alignment > 16 || at + bytes > kThreadgroupBytes)
      fail_here(LILY_BAD_ARGUMENT, -1, at, "%zu bytes of threadgroup memory; there are %zu", at + bytes,
                kThreadgroupBytes);
    run.threadgroup_used = at + bytes;
    run.variables[id] = at + 1;
  }
  return run.threadgroup_memory + run.variables[id] - 1;
}
void *threadgroup_block(int) { return run.threadgroup_memory; }

void check(const void *address, uint bytes, int access) {
  if (kTraced) check_access((uintptr_t)address, bytes, access);
}

void wait_threadgroup(int line) {
  run.current->line = line;
  run.current->state = State::kAtThreadgroup;
  to_host();
}
void wait_simdgroup(int line) {
  run.current->line = line;
  run.current->state = State::kAtSimdgroup;
  run.current->barrier = true;
  to_host();
}
// Two buffers alternate: a lane cannot be two operations ahead of another.
const void *exchange(const void *mine, size_t bytes, int line) {
  const uint32_t sg = run.current->index / kLanes;
  char *all = run.exchange[sg][run.phase[sg] & 1];
  memcpy(all + (run.current->index % kLanes) * bytes, mine, bytes);
  run.current->line = line;
  run.current->state = State::kAtSimdgroup;
  run.current->barrier = false;
  to_host();
  return all;
}
}  // namespace metal::shim

// clang's tracing of loads and stores.
#define LILY_TRACE(N)                                                                                       \
  extern "C" void __sanitizer_cov_load##N(void *p) { check_access((uintptr_t)p, N, metal::shim::read); } \
  extern "C" void __sanitizer_cov_store##N(void *p) { check_access((uintptr_t)p, N, metal::shim::write); }
LILY_TRACE(1)
LILY_TRACE(2)
LILY_TRACE(4)
LILY_TRACE(8)
LILY_TRACE(16)

// Older run-time libraries lack the conversion to bf16: to nearest, ties to even.
extern "C" __bf16 __truncsfbf2(float f) {
  uint32_t u = __builtin_bit_cast(uint32_t, f);
  uint16_t bits = (u & 0x7FFFFFFFu) > 0x7F800000u ? uint16_t(u >> 16 | 0x40u) : uint16_t((u + 0x7FFFu + (u >> 16 & 1u)) >> 16);
  return __builtin_bit_cast(__bf16, bits);
}

extern "C" uint32_t lily_kernel_count() {
  table();
  return (uint32_t)infos.size();
}
extern "C" const struct lily_kernel_info *lily_kernel_at(uint32_t index) {
  table();
  return index < infos.size() ? &infos[index] : nullptr;
}
extern "C" const struct lily_kernel_info *lily_find_kernel(const char *name) {
  table();
  const lily::Registration *k = find(name);
  return k == nullptr ? nullptr : &k->info;
}

extern "C" int lily_run_kernel(const char *name, void *const *buffers, const uint64_t *buffer_bytes,
                               uint64_t threadgroup_bytes, const uint32_t groups[3], const uint32_t threads[3],
                               uint32_t flags, struct lily_report *report) {
  std::lock_guard<std::mutex> lock(one_at_a_time);
  table();
  set_up();
  const lily::Registration *kernel = find(name);
  if (kernel == nullptr) return refuse(report, LILY_UNKNOWN_KERNEL, "there is no kernel %s", name);
  const uint64_t num_threads = (uint64_t)threads[0] * threads[1] * threads[2];
  if (num_threads == 0 || num_threads > kernel->info.max_threads)
    return refuse(report, LILY_BAD_ARGUMENT, "%s: %llu threads in a threadgroup; the most is %u", name,
                  (unsigned long long)num_threads, kernel->info.max_threads);
  if (num_threads % kLanes != 0)
    return refuse(report, LILY_BAD_ARGUMENT, "%s: %llu threads in a threadgroup are not a multiple of 32", name,
                  (unsigned long long)num_threads);
  if (threadgroup_bytes % 16 != 0 || threadgroup_bytes > kThreadgroupBytes)
    return refuse(report, LILY_BAD_ARGUMENT, "%s: %llu bytes of threadgroup memory; a multiple of 16 up to %zu is due",
                  name, (unsigned long long)threadgroup_bytes, kThreadgroupBytes);
  if ((threadgroup_bytes != 0) != (kernel->info.uses_threadgroup_block != 0))
    return refuse(report, LILY_BAD_ARGUMENT, "%s: threadgroup memory of %llu bytes is set; the kernel takes %s", name,
                  (unsigned long long)threadgroup_bytes, kernel->info.uses_threadgroup_block ? "some" : "none");
  run.kernel = kernel;
  run.flags = flags;
  run.random = (flags >> 16) * 0x9E3779B97F4A7C15ull + 0x2545F4914F6CDD1Dull;
  run.num_buffers = kernel->info.num_buffers;
  for (uint32_t i = 0; i < run.num_buffers; i++) {
    const lily_buffer_info &b = kernel->info.buffers[i];
    if (buffers[i] == nullptr) return refuse(report, LILY_BAD_ARGUMENT, "%s: buffer %u (%s) is not bound", name, i, b.name);
    if ((uintptr_t)buffers[i] % b.alignment != 0)
      return refuse(report, LILY_BAD_ARGUMENT, "%s: buffer %u (%s) is not aligned to %u bytes", name, i, b.name, b.alignment);
    if (b.kind == LILY_CONSTANT && buffer_bytes[i] < b.element_size)
      return refuse(report, LILY_BAD_ARGUMENT, "%s: buffer %u (%s) has %llu bytes; %u are due", name, i, b.name,
                    (unsigned long long)buffer_bytes[i], b.element_size);
    Buffer &to = run.buffers[i];
    to.bytes = buffer_bytes[i];
    to.access = b.access;
    to.address = (char *)buffers[i];
    const size_t grains = (size_t)((buffer_bytes[i] + kGrain - 1) / kGrain);
    const bool tracks = kTraced && !(flags & LILY_NO_TRACKING);
    to.touched.assign(tracks ? grains : 0, 0);
    const bool races = tracks && (flags & LILY_ISOLATE_BUFFERS);
    to.writer.assign(races ? grains : 0, 0);
    to.reader.assign(races ? grains : 0, 0);
  }
  static char *isolated = nullptr;
  if (flags & LILY_ISOLATE_BUFFERS) {
    if (isolated == nullptr) isolated = (char *)reserve((LILY_MAX_BUFFERS + 1) * kIsolation);
    for (uint32_t i = 0; i < run.num_buffers; i++) {
      if (run.buffers[i].bytes > kIsolation / 2)
        return refuse(report, LILY_BAD_ARGUMENT, "%s: buffer %u is too large to be isolated", name, i);
      run.buffers[i].address = isolated + i * kIsolation + kIsolation / 4;
      memcpy(run.buffers[i].address, buffers[i], run.buffers[i].bytes);
    }
  }
  for (uint32_t i = 0; i < run.num_buffers; i++) run.addresses[i] = run.buffers[i].address;
  run.groups = metal::uint3{groups[0], groups[1], groups[2]};
  run.threads = metal::uint3{threads[0], threads[1], threads[2]};
  run.num_threads = (uint32_t)num_threads;
  run.num_simdgroups = run.num_threads / kLanes;
  run.block_bytes = threadgroup_bytes;
  run.failed = false;
  memset(&run.report, 0, sizeof run.report);
  run.report.buffer = -1;
  const uint64_t num_groups = (uint64_t)groups[0] * groups[1] * groups[2];
  std::vector<uint32_t> order, outer, inner;
  permute(order, (uint32_t)num_groups);
  size_t most = threadgroup_bytes;
  for (uint32_t i = 0; i < num_groups && !run.failed; i++) {
    run.group_index = order[i];
    run.group = metal::uint3{order[i] % groups[0], order[i] / groups[0] % groups[1], order[i] / groups[0] / groups[1]};
    run_group(outer, inner);
    most = std::max(most, run.threadgroup_used);
  }
  if (flags & LILY_ISOLATE_BUFFERS)
    for (uint32_t i = 0; i < run.num_buffers; i++)
      if (run.buffers[i].access & LILY_WRITE) memcpy(buffers[i], run.buffers[i].address, run.buffers[i].bytes);
  run.report.threadgroup_bytes = most;
  for (uint32_t i = 0; i < run.num_buffers; i++) {
    Buffer &b = run.buffers[i];
    collect(b, LILY_READ, b.reads);
    collect(b, LILY_WRITE, b.writes);
    run.report.touched[i] = {b.reads.data(), b.writes.data(), b.reads.size(), b.writes.size()};
  }
  for (lily_kernel_info &info : infos)
    if (info.name == kernel->info.name) info.static_threadgroup_bytes = (uint32_t)(most - threadgroup_bytes);
  if (report != nullptr) *report = run.report;
  return run.report.status;
}
