/*
 * A test double of Metal for Linux: Foundation's and Metal's classes on the GNU Objective-C runtime, behind Apple's
 * C entry points. Its encoder runs the CPU build of the kernels.
 *
 * It behaves like Metal under its validation layer, with one difference: misuse is noted as a violation (read by the
 * tests) and fails the command buffer, where Metal ends the process. Committed work runs late, when somebody waits
 * for it or asks twice for its status, so that a read before completion sees old bytes and a release before
 * completion is found, each time.
 */
#ifndef LILY_METAL_DOUBLE_H
#define LILY_METAL_DOUBLE_H

#include <stdbool.h>
#include <stdint.h>

#include "lily_kernel_abi.h"

/* ---- for the tests -------------------------------------------------------------------------------------------- */

/*
 * Loads a CPU build of kernels (lily_kernel_abi.h); 0, or -1 with the reason in double_text("kernels"). The variable
 * LILY_METAL_DOUBLE_KERNELS of the environment names one to load at the start.
 */
int double_load_kernels(const char *path);

/* Forgets violations, notes, counters and armed failures, restores settings, frees released objects. */
void double_reset(void);

/* Settings and counters by name; see control.c. An unknown name is a violation. */
void double_set(const char *name, long value);
long double_get(const char *name);

/*
 * Arms one failure: the event fails once, after that many successes. Events: defaultDevice, allDevices, queue,
 * buffer, library, function, pipeline, residencySet, commandBuffer, encoder, run.
 */
void double_fail(const char *event, long after, const char *domain, long code, const char *text);

const char *double_violation_at(long index); /* NULL past the end */
const char *double_note_at(long index);      /* barriers that order nothing; NULL past the end */
void double_clear_violations(void);
const char *double_text(const char *name);

/*
 * Writes the dispatches of all command buffers that run from now on to a file (trace.c); NULL ends that. 0, or -1 if the
 * file can't be made. Grids that the GPU counts are not supported.
 */
int double_trace(const char *path);

/* Type encoding of a method of the double, NULL if it has none; a leading + on the class asks for a class method. */
const char *double_method_types(const char *class_name, const char *selector);

/* ---- between its parts ---------------------------------------------------------------------------------------- */

enum setting {
  SET_FAMILY,       /* highest Apple family */
  SET_METAL4,       /* 1 if family Metal4 is supported */
  SET_UNIFIED,      /* unified memory */
  SET_MACOS,        /* major version */
  SET_LANGUAGE,     /* newest language version, as MTLLanguageVersion counts */
  SET_RECOMMENDED,  /* recommendedMaxWorkingSetSize */
  SET_MAX_BUFFER,   /* maxBufferLength */
  SET_MAX_THREADS,  /* of every pipeline; 0: as the kernel says */
  SET_RUN,          /* 0: dispatches are checked but not run */
  SET_TRACK,        /* 0: no hazard check */
  SET_ORDER,        /* lily_run_flags for every kernel */
  SET_DROP_BARRIER, /* number of the one barrier that is left out, counted from 0 since the reset; -1: none */
  SET_MUTATE,       /* 1: for every barrier, notes whether the check would not miss it; see hazards_mutate */
  NUM_SETTINGS
};

enum counter {
  COUNT_LIVE,       /* objects alive; not reset */
  COUNT_MESSAGES,
  COUNT_ALLOCATED,  /* bytes of buffers; not reset */
  COUNT_DISPATCHES, /* run */
  COUNT_BARRIERS,   /* reached, dropped ones included */
  COUNT_COMMITS,
  COUNT_RESIDENT,   /* bytes of sets whose residency is requested */
  COUNT_VIOLATIONS,
  COUNT_MUTANTS,    /* barriers that were left out in turn, see hazards_mutate */
  COUNT_DIGEST,     /* no count: a hash of the commands of the last command buffer that ran */
  NUM_COUNTERS
};

long setting(enum setting which);
long count(enum counter which, long delta); /* returns the new value */
void violation(const char *format, ...) __attribute__((format(printf, 1, 2)));
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

struct failure {
  bool armed;
  long after, code;
  char domain[64], text[512];
};
/* The armed failure if this event is to fail now, else NULL. Valid until the next double_fail. */
const struct failure *fails(const char *event);

const struct lily_kernel_info *find_kernel(const char *name);
int run_kernel(const char *name, void *const *buffers, const uint64_t *buffer_bytes, uint64_t threadgroup_bytes,
               const uint32_t groups[3], const uint32_t threads[3], uint32_t flags, struct lily_report *report);

void free_released_objects(void);
long pool_depth(void);

/* ---- trace.c --------------------------------------------------------------------------------------------------- */

bool trace_is_open(void);
long trace_buffer(const char *memory, uint64_t length); /* its number; described in the trace when it is new */
void trace_dispatch(const char *kernel, const uint64_t groups[3], const uint64_t threads[3], uint64_t block_bytes);
void trace_bound(long buffer, uint64_t offset);
void trace_bytes(const char *bytes, uint64_t length);
void trace_end(void);
void trace_barrier(void);

/* ---- hazards.c ------------------------------------------------------------------------------------------------- */

struct ranges {
  uint64_t (*items)[2]; /* sorted, disjoint [begin, end) */
  long size, capacity;
};

/* What the dispatches between two barriers touched, as absolute addresses. */
struct footprint {
  struct ranges reads, writes;
  char *readers, *writers; /* names of kernels, for messages */
};

/* Follows one concurrent encoder. */
struct hazards {
  struct footprint before, now; /* of the segments before and after the last barrier */
  bool barrier_needed;
  long barrier;                 /* number of the last barrier; -1 at the encoder's start */
  bool quiet, violated;         /* quiet: a hazard is not reported, only remembered */
  struct trace *trace;          /* what happened, if barriers are to be mutated; else NULL */
};

/* A dispatch with what it touched, or a barrier (no kernel). */
struct trace {
  const char *kernel;
  struct ranges reads, writes;
  long barrier;
  struct trace *next;
};

void hazards_begin(struct hazards *h);
void hazards_barrier(struct hazards *h, long number);
void hazards_dispatch(struct hazards *h, const char *kernel, const struct ranges *reads, const struct ranges *writes);
void hazards_end(struct hazards *h);

/* From now on remembers what happens, and at the end runs the check again without each of the barriers. */
void hazards_mutate(struct hazards *h);

void ranges_add(struct ranges *r, uint64_t begin, uint64_t end);
void ranges_clear(struct ranges *r);
void ranges_free(struct ranges *r);

#endif
