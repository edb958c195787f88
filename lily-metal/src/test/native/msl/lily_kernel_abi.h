/*
 * A build of Lily's Metal kernels for a machine without Metal: one shared library, used by the kernel tests (through
 * FFM) and by the Metal test double's compute encoder. The processor's is runtime.cpp, described here; ../gpu holds one
 * for NVIDIA GPUs, which takes no order and reports no ranges.
 *
 * A dispatch is one call of lily_run_kernel. Buffers are bound densely from index 0; an argument that Metal takes
 * through setBytes is a buffer like any other. Threadgroup memory of setThreadgroupMemoryLength:atIndex: is one
 * block; kernels use index 0 only.
 */
#ifndef LILY_KERNEL_ABI_H
#define LILY_KERNEL_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LILY_MAX_BUFFERS 31

enum lily_buffer_kind {
  LILY_DEVICE = 0,   /* device T*: setBuffer:offset:atIndex: */
  LILY_CONSTANT = 1  /* constant T& or constant T*: setBytes:length:atIndex: or setBuffer:offset:atIndex: */
};

enum lily_access {
  LILY_READ = 1,
  LILY_WRITE = 2
};

struct lily_buffer_info {
  const char *name;      /* parameter name in the source */
  uint32_t element_size; /* bytes of one element; of the whole struct for a constant reference */
  uint32_t alignment;    /* the bound address must be a multiple of this */
  uint32_t access;       /* lily_access bits the type allows: a const pointer or constant is LILY_READ */
  uint32_t kind;         /* lily_buffer_kind */
};

struct lily_kernel_info {
  const char *name;
  uint32_t num_buffers; /* bindings 0 .. num_buffers - 1; all must be bound */
  uint32_t uses_threadgroup_block; /* 1 if setThreadgroupMemoryLength:atIndex:0 must have been sent */
  uint32_t static_threadgroup_bytes; /* threadgroup variables of the body; 0 until the kernel has run once */
  uint32_t max_threads; /* most threads of a threadgroup: [[max_total_threads_per_threadgroup]], else 1024 */
  const struct lily_buffer_info *buffers;
};

/* All kernels, sorted by name. */
uint32_t lily_kernel_count(void);
const struct lily_kernel_info *lily_kernel_at(uint32_t index);           /* NULL past the last */
const struct lily_kernel_info *lily_find_kernel(const char *name); /* NULL if unknown */

/* Order in which the threads between two barriers, and the threadgroups of the grid, run. */
enum lily_run_flags {
  LILY_ORDER_ASCENDING = 0,
  LILY_ORDER_DESCENDING = 1,
  LILY_ORDER_SHUFFLED = 2,     /* another permutation at every barrier; the seed is flags >> 16 */
  LILY_ORDER_MASK = 3,
  LILY_ISOLATE_BUFFERS = 4,    /* run on copies that lie far apart, so that no stray access meets another buffer */
  LILY_NO_TRACKING = 8         /* do not collect ranges (bounds are still checked) */
};

enum lily_status {
  LILY_OK = 0,
  LILY_UNKNOWN_KERNEL = 1,
  LILY_BAD_ARGUMENT = 2,       /* unbound, misaligned or too short buffer; bad grid or threadgroup size */
  LILY_OUT_OF_BOUNDS = 3,      /* outside every buffer, threadgroup array and stack */
  LILY_MISALIGNED = 4,
  LILY_DIVERGENCE = 5,         /* a barrier or simdgroup operation that not all of its threads reach */
  LILY_RACE = 6,               /* two threads met in threadgroup memory without a barrier between them, or (with
                                  LILY_ISOLATE_BUFFERS) two threadgroups in a buffer */
  LILY_WRITE_TO_READ_ONLY = 7,
  LILY_DEVICE_ERROR = 8        /* of the GPU that runs the kernels, where one does */
};

struct lily_range {
  uint64_t begin; /* bytes from the bound address */
  uint64_t end;   /* exclusive */
};

/* Sorted, disjoint ranges, exact to 2 bytes; memory belongs to the library until the next lily_run_kernel. */
struct lily_touched {
  const struct lily_range *reads;
  const struct lily_range *writes;
  uint64_t num_reads;
  uint64_t num_writes;
};

struct lily_report {
  int32_t status;          /* lily_status, the same as returned */
  int32_t buffer;          /* buffer concerned, or -1 */
  uint32_t group[3];       /* threadgroup concerned */
  uint32_t thread;         /* thread index in the threadgroup */
  uint64_t offset;         /* byte offset in the buffer concerned */
  uint64_t threadgroup_bytes; /* static and dynamic threadgroup memory used */
  char message[256];       /* one sentence; empty if the status is LILY_OK */
  struct lily_touched touched[LILY_MAX_BUFFERS];
};

/*
 * Runs all threadgroups of one dispatch on the calling thread; calls from several threads wait for each other.
 *
 * buffers, buffer_bytes: num_buffers entries; bytes from the bound address to the end of the buffer
 * threadgroup_bytes: length set for threadgroup memory index 0; 0 if none
 * groups: threadgroups in the grid; threads: threads per threadgroup, their product at most max_threads
 * report: may be NULL
 *
 * Threadgroup memory is filled with 0xFF (NaN) before every threadgroup. After a status other than LILY_OK the
 * buffers hold whatever had been written by then.
 */
int lily_run_kernel(const char *name, void *const *buffers, const uint64_t *buffer_bytes, uint64_t threadgroup_bytes,
                    const uint32_t groups[3], const uint32_t threads[3], uint32_t flags, struct lily_report *report);

#ifdef __cplusplus
}
#endif
#endif
