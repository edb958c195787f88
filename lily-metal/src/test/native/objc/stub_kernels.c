/*
 * Three hand-written kernels behind the ABI of the kernels' CPU build, so that the double can be tested without a
 * compiler for the real ones.
 *   stub_add      out[i] = a[i] + b[i]
 *   stub_scale    x[i] *= factor, in place, through threadgroup memory
 *   stub_count    counts[0..2] = {value, 1, 1}: a grid for an indirect dispatch
 * One thread handles one element.
 */
#include <stdio.h>
#include <string.h>

#include "lily_kernel_abi.h"

#define DEVICE(parameter, bits) {.name = parameter, .element_size = 4, .alignment = 4, .access = bits, .kind = LILY_DEVICE}
#define VALUE(parameter) {.name = parameter, .element_size = 4, .alignment = 4, .access = LILY_READ, .kind = LILY_CONSTANT}

static const struct lily_buffer_info ADD[] = {DEVICE("a", LILY_READ), DEVICE("b", LILY_READ), DEVICE("out", LILY_WRITE)};
static const struct lily_buffer_info SCALE[] = {DEVICE("x", LILY_READ | LILY_WRITE), VALUE("factor")};
static const struct lily_buffer_info COUNT[] = {DEVICE("counts", LILY_WRITE), VALUE("value")};

static const struct lily_kernel_info KERNELS[] = {
    {.name = "stub_add", .num_buffers = 3, .max_threads = 1024, .buffers = ADD},
    {.name = "stub_count", .num_buffers = 2, .max_threads = 1024, .buffers = COUNT},
    {.name = "stub_scale", .num_buffers = 2, .uses_threadgroup_block = 1, .static_threadgroup_bytes = 64,
     .max_threads = 256, .buffers = SCALE},
};
uint32_t lily_kernel_count(void) { return sizeof KERNELS / sizeof *KERNELS; }

const struct lily_kernel_info *lily_kernel_at(uint32_t index) {
  return index < lily_kernel_count() ? &KERNELS[index] : NULL;
}

const struct lily_kernel_info *lily_find_kernel(const char *name) {
  for (uint32_t i = 0; i < lily_kernel_count(); i++) {
    if (!strcmp(KERNELS[i].name, name)) return &KERNELS[i];
  }
  return NULL;
}

static struct lily_range touched;

static int fail(struct lily_report *report, int status, const char *message) {
  report->status = status;
  snprintf(report->message, sizeof report->message, "%s", message);
  return status;
}

static void report_access(struct lily_touched *t, uint32_t access, uint32_t flags) {
  memset(t, 0, sizeof *t);
  if (flags & LILY_NO_TRACKING) return;
  if (access & LILY_READ) {
    t->reads = &touched;
    t->num_reads = 1;
  }
  if (access & LILY_WRITE) {
    t->writes = &touched;
    t->num_writes = 1;
  }
}

int lily_run_kernel(const char *name, void *const *buffers, const uint64_t *buffer_bytes, uint64_t threadgroup_bytes,
                    const uint32_t groups[3], const uint32_t threads[3], uint32_t flags, struct lily_report *report) {
  const struct lily_kernel_info *kernel = lily_find_kernel(name);
  memset(report, 0, sizeof *report);
  if (!kernel) return fail(report, LILY_UNKNOWN_KERNEL, name);
  uint64_t n = (uint64_t)groups[0] * groups[1] * groups[2] * threads[0] * threads[1] * threads[2];
  if (kernel->buffers == COUNT) n = 3;
  for (uint32_t i = 0; i < kernel->num_buffers; i++) {
    if (kernel->buffers[i].kind == LILY_DEVICE && buffer_bytes[i] < n * 4) {
      return fail(report, LILY_OUT_OF_BOUNDS, "a buffer is shorter than the grid");
    }
    report_access(&report->touched[i], kernel->buffers[i].access, flags);
  }
  touched = (struct lily_range){0, n * 4};
  if (kernel->buffers == ADD) {
    const float *a = buffers[0], *b = buffers[1];
    float *out = buffers[2];
    for (uint64_t i = 0; i < n; i++) out[i] = a[i] + b[i];
  } else if (kernel->buffers == SCALE) {
    float *x = buffers[0], factor;
    memcpy(&factor, buffers[1], sizeof factor);
    for (uint64_t i = 0; i < n; i++) x[i] *= factor;
  } else {
    uint32_t counts[3] = {0, 1, 1};
    memcpy(counts, buffers[1], sizeof counts[0]);
    memcpy(buffers[0], counts, sizeof counts);
  }
  return LILY_OK;
}
