// lily_kernel_abi.h on an NVIDIA GPU: a dispatch copies its buffers to the device, launches the kernel, waits, checks
// every return code and that nothing was written around the buffers, and copies what can have been written back.
//
// The kernels are lily-kernels.cubin or lily-kernels.ptx beside this library. Bindings into the same memory share one
// copy. With LILY_GPU_EXACT=1 in the environment each buffer is an allocation of exactly its own size, so that a memory
// checker sees every access past its end; otherwise buffers lie in one pool between zones of a known byte.
//
// Plain C in the end, but for what the translated tables register themselves with.
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_driver.h"
#include "runtime.h"

namespace {
constexpr uint32_t kMaxKernels = 512;
constexpr size_t kZone = 4096;  // bytes on either side of a buffer
constexpr int kZoneByte = 0xA5;

struct Region {
  char *host;
  uint64_t bytes;
  bool is_written;
  CUdeviceptr device;
};

lily::Registration *registered;
lily_kernel_info infos[kMaxKernels];
CUfunction functions[kMaxKernels];
uint32_t num_kernels;

pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
CUcontext context;
CUmodule module;
CUdeviceptr pool;
size_t pool_bytes;
bool is_exact;
char failure[256];  // of the set-up; empty if none
char description[256];

int by_name(const void *a, const void *b) {
  return strcmp(((const lily_kernel_info *)a)->name, ((const lily_kernel_info *)b)->name);
}

void fill_table() {
  for (const lily::Registration *r = registered; r != nullptr; r = r->next) {
    if (num_kernels == kMaxKernels) abort();
    infos[num_kernels++] = r->info;
  }
  qsort(infos, num_kernels, sizeof infos[0], by_name);
}

void list_kernels() {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, fill_table);
}

bool failed(CUresult result, const char *what, char *message, size_t bytes) {
  if (result == 0) return false;
  const char *name = "?", *text = "?";
  cuGetErrorName(result, &name);
  cuGetErrorString(result, &text);
  snprintf(message, bytes, "%s: %s (%d), %s", what, name, result, text);
  return true;
}

// Beside this library.
bool load_module() {
  Dl_info here;
  if (dladdr((void *)&load_module, &here) == 0 || here.dli_fname == nullptr) return false;
  const char *slash = strrchr(here.dli_fname, '/');
  const int folder = slash == nullptr ? 0 : (int)(slash + 1 - here.dli_fname);
  const char *suffixes[] = {"cubin", "ptx"};
  for (const char *suffix : suffixes) {
    char path[4096];
    snprintf(path, sizeof path, "%.*slily-kernels.%s", folder, here.dli_fname, suffix);
    FILE *file = fopen(path, "rb");
    if (file == nullptr) continue;
    fclose(file);
    if (failed(cuModuleLoad(&module, path), path, failure, sizeof failure)) return false;
    int version = 0;
    char name[128] = "?";
    cuDriverGetVersion(&version);
    cuDeviceGetName(name, sizeof name, 0);
    snprintf(description, sizeof description, "%s, CUDA driver %d.%d, %u kernels from %s", name, version / 1000,
             version % 1000 / 10, num_kernels, path + folder);
    return true;
  }
  snprintf(failure, sizeof failure, "there is no lily-kernels.cubin or .ptx beside %s", here.dli_fname);
  return false;
}

// Once; the outcome is kept.
bool set_up() {
  static bool done = false, succeeded = false;
  if (done) {
    return succeeded && !failed(cuCtxSetCurrent(context), "cuCtxSetCurrent", failure, sizeof failure);
  }
  done = true;
  list_kernels();
  const char *exact = getenv("LILY_GPU_EXACT");
  is_exact = exact != nullptr && strcmp(exact, "1") == 0;
  const char *missing = find_cuda_driver();
  if (missing != nullptr) {
    snprintf(failure, sizeof failure, "%s was not found; is NVIDIA's driver installed?", missing);
    return false;
  }
  CUdevice device;
  if (failed(cuInit(0), "cuInit", failure, sizeof failure) ||
      failed(cuDeviceGet(&device, 0), "cuDeviceGet", failure, sizeof failure) ||
      failed(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain", failure, sizeof failure) ||
      failed(cuCtxSetCurrent(context), "cuCtxSetCurrent", failure, sizeof failure) || !load_module())
    return false;
  for (uint32_t i = 0; i < num_kernels; i++)
    if (failed(cuModuleGetFunction(&functions[i], module, infos[i].name), infos[i].name, failure, sizeof failure))
      return false;
  succeeded = true;
  return true;
}

int refuse(lily_report *report, int status, const char *format, ...) {
  if (report != nullptr) {
    report->status = status;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(report->message, sizeof report->message, format, arguments);
    va_end(arguments);
  }
  return status;
}

size_t rounded(uint64_t bytes) { return (bytes + 255) / 256 * 256; }

// Makes disjoint regions of the bindings; region_of[i] is binding i's.
uint32_t find_regions(const lily_kernel_info &kernel, void *const *buffers, const uint64_t *bytes, Region *regions,
                      uint32_t *region_of) {
  uint32_t order[LILY_MAX_BUFFERS];
  const uint32_t n = kernel.num_buffers;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t at = i;
    for (; at > 0 && buffers[order[at - 1]] > buffers[i]; at--) order[at] = order[at - 1];
    order[at] = i;
  }
  uint32_t count = 0;
  for (uint32_t k = 0; k < n; k++) {
    const uint32_t i = order[k];
    char *begin = (char *)buffers[i], *end = begin + bytes[i];
    if (count == 0 || begin >= regions[count - 1].host + regions[count - 1].bytes) {
      regions[count++] = Region{begin, 0, false, 0};
    }
    Region &r = regions[count - 1];
    if (end > r.host + r.bytes) r.bytes = (uint64_t)(end - r.host);
    r.is_written |= (kernel.buffers[i].access & LILY_WRITE) != 0;
    region_of[i] = count - 1;
  }
  return count;
}

// Gives each region its place on the device and fills the zones between them.
bool place(Region *regions, uint32_t count, char *message, size_t length) {
  if (is_exact) {
    for (uint32_t r = 0; r < count; r++)
      if (failed(cuMemAlloc(&regions[r].device, regions[r].bytes + (regions[r].bytes == 0)), "cuMemAlloc", message, length))
        return false;
    return true;
  }
  size_t total = kZone;
  for (uint32_t r = 0; r < count; r++) total += rounded(regions[r].bytes) + kZone;
  if (total > pool_bytes) {
    if (pool != 0 && failed(cuMemFree(pool), "cuMemFree", message, length)) return false;
    pool = 0;
    pool_bytes = 0;
    const size_t wanted = total + total / 4;
    if (failed(cuMemAlloc(&pool, wanted), "cuMemAlloc", message, length)) return false;
    pool_bytes = wanted;
  }
  CUdeviceptr at = pool;
  for (uint32_t r = 0; r <= count; r++) {
    // The zone begins at the last buffer's very end.
    const CUdeviceptr from = r == 0 ? at : regions[r - 1].device + regions[r - 1].bytes;
    if (failed(cuMemsetD8(from, kZoneByte, at + kZone - from), "cuMemsetD8", message, length)) return false;
    if (r == count) break;
    regions[r].device = at + kZone;
    at += kZone + rounded(regions[r].bytes);
  }
  return true;
}

// The first byte of a zone that was written, as an offset from the region before or after it; false if none was.
bool find_stray(const Region *regions, uint32_t count, uint32_t *region, int64_t *offset, char *message, size_t length) {
  static unsigned char zone[kZone + 256];
  for (uint32_t r = 0; r <= count; r++) {
    const CUdeviceptr from = r == 0 ? pool : regions[r - 1].device + regions[r - 1].bytes;
    const CUdeviceptr to = r == count ? from / 256 * 256 + (from % 256 != 0) * 256 + kZone : regions[r].device;
    if (failed(cuMemcpyDtoH(zone, from, to - from), "cuMemcpyDtoH", message, length)) return true;
    for (size_t i = 0; i < to - from; i++) {
      if (zone[i] == kZoneByte) continue;
      const bool is_after = r > 0 && (i < kZone / 2 || r == count);
      *region = is_after ? r - 1 : r;
      *offset = is_after ? (int64_t)(regions[r - 1].bytes + i) : -(int64_t)(to - from - i);
      return true;
    }
  }
  return false;
}

int run_placed(const lily_kernel_info &kernel, CUfunction function, Region *regions, uint32_t count,
               const uint32_t *region_of, void *const *buffers, uint64_t threadgroup_bytes, const uint32_t groups[3],
               const uint32_t threads[3], lily_report *report) {
  char message[200];
  if (!place(regions, count, message, sizeof message))
    return refuse(report, LILY_DEVICE_ERROR, "%s: %s", kernel.name, message);
  for (uint32_t r = 0; r < count; r++)
    if (regions[r].bytes != 0 && failed(cuMemcpyHtoD(regions[r].device, regions[r].host, regions[r].bytes),
                                        "cuMemcpyHtoD", message, sizeof message))
      return refuse(report, LILY_DEVICE_ERROR, "%s: %s", kernel.name, message);
  CUdeviceptr pointers[LILY_MAX_BUFFERS];
  void *parameters[LILY_MAX_BUFFERS];
  for (uint32_t i = 0; i < kernel.num_buffers; i++) {
    const Region &r = regions[region_of[i]];
    pointers[i] = r.device + (uint64_t)((char *)buffers[i] - r.host);
    parameters[i] = &pointers[i];
  }
  if (failed(cuLaunchKernel(function, groups[0], groups[1], groups[2], threads[0], 1, 1, (unsigned)threadgroup_bytes,
                            nullptr, parameters, nullptr),
             "cuLaunchKernel", message, sizeof message) ||
      failed(cuCtxSynchronize(), "cuCtxSynchronize", message, sizeof message))
    return refuse(report, LILY_DEVICE_ERROR, "%s: %s", kernel.name, message);
  for (uint32_t r = 0; r < count; r++)
    if (regions[r].is_written && regions[r].bytes != 0 &&
        failed(cuMemcpyDtoH(regions[r].host, regions[r].device, regions[r].bytes), "cuMemcpyDtoH", message, sizeof message))
      return refuse(report, LILY_DEVICE_ERROR, "%s: %s", kernel.name, message);
  uint32_t stray = 0;
  int64_t offset = 0;
  message[0] = 0;
  if (!is_exact && find_stray(regions, count, &stray, &offset, message, sizeof message)) {
    if (message[0] != 0) return refuse(report, LILY_DEVICE_ERROR, "%s: %s", kernel.name, message);
    for (uint32_t i = 0; i < kernel.num_buffers; i++)
      if (region_of[i] == stray)
        return refuse(report, LILY_OUT_OF_BOUNDS, "%s: write at byte %lld of %s, or of what it is bound with, %llu bytes",
                      kernel.name, (long long)offset, kernel.buffers[i].name, (unsigned long long)regions[stray].bytes);
  }
  return LILY_OK;
}
}  // namespace

void lily::add(Registration *registration) {
  registration->next = registered;
  registered = registration;
}

extern "C" uint32_t lily_kernel_count(void) {
  list_kernels();
  return num_kernels;
}
extern "C" const struct lily_kernel_info *lily_kernel_at(uint32_t index) {
  list_kernels();
  return index < num_kernels ? &infos[index] : nullptr;
}
extern "C" const struct lily_kernel_info *lily_find_kernel(const char *name) {
  list_kernels();
  for (uint32_t i = 0; i < num_kernels; i++)
    if (strcmp(infos[i].name, name) == 0) return &infos[i];
  return nullptr;
}

// The GPU, its driver and the kernels' file, or why there is none.
extern "C" const char *lily_describe(void) {
  pthread_mutex_lock(&one_at_a_time);
  const char *text = set_up() ? description : failure;
  pthread_mutex_unlock(&one_at_a_time);
  return text;
}

extern "C" int lily_run_kernel(const char *name, void *const *buffers, const uint64_t *buffer_bytes,
                               uint64_t threadgroup_bytes, const uint32_t groups[3], const uint32_t threads[3],
                               uint32_t, struct lily_report *report) {
  if (report != nullptr) {
    memset(report, 0, sizeof *report);
    report->buffer = -1;
  }
  pthread_mutex_lock(&one_at_a_time);
  int status;
  const lily_kernel_info *kernel = nullptr;
  if (!set_up()) {
    status = refuse(report, LILY_DEVICE_ERROR, "%s: %s", name, failure);
  } else if ((kernel = lily_find_kernel(name)) == nullptr) {
    status = refuse(report, LILY_UNKNOWN_KERNEL, "there is no kernel %s", name);
  } else if (threads[0] == 0 || threads[0] > kernel->max_threads || threads[1] != 1 || threads[2] != 1) {
    status = refuse(report, LILY_BAD_ARGUMENT, "%s: threadgroups of %u x %u x %u threads; one row of at most %u is due",
                    name, threads[0], threads[1], threads[2], kernel->max_threads);
  } else {
    for (uint32_t i = 0; i < kernel->num_buffers; i++) {
      if (buffers[i] != nullptr) continue;
      pthread_mutex_unlock(&one_at_a_time);
      return refuse(report, LILY_BAD_ARGUMENT, "%s: buffer %u (%s) is not bound", name, i, kernel->buffers[i].name);
    }
    Region regions[LILY_MAX_BUFFERS];
    uint32_t region_of[LILY_MAX_BUFFERS];
    const uint32_t count = find_regions(*kernel, buffers, buffer_bytes, regions, region_of);
    status = run_placed(*kernel, functions[kernel - infos], regions, count, region_of, buffers, threadgroup_bytes,
                        groups, threads, report);
    if (is_exact)
      for (uint32_t r = 0; r < count; r++)
        if (regions[r].device != 0) cuMemFree(regions[r].device);
  }
  pthread_mutex_unlock(&one_at_a_time);
  return status;
}
