/* Settings, counters, armed failures, violations, and the kernel library. */
#define _GNU_SOURCE
#include "double.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const struct {
  const char *name;
  long initial;
} SETTINGS[NUM_SETTINGS] = {
    [SET_FAMILY] = {"family", 1009},
    [SET_METAL4] = {"metal4", 1},
    [SET_UNIFIED] = {"unified", 1},
    [SET_MACOS] = {"macos", 26},
    [SET_LANGUAGE] = {"language", 4 << 16},
    [SET_RECOMMENDED] = {"recommended", 48L << 30},
    [SET_MAX_BUFFER] = {"maxBuffer", 36L << 30},
    [SET_MAX_THREADS] = {"maxThreads", 0},
    [SET_RUN] = {"run", 1},
    [SET_TRACK] = {"track", 1},
    [SET_ORDER] = {"order", LILY_ORDER_ASCENDING},
    [SET_DROP_BARRIER] = {"dropBarrier", -1},
    [SET_MUTATE] = {"mutate", 0},
};
static long settings[NUM_SETTINGS];

static const char *const COUNTERS[NUM_COUNTERS] = {
    [COUNT_LIVE] = "live",           [COUNT_MESSAGES] = "messages", [COUNT_ALLOCATED] = "allocated",
    [COUNT_DISPATCHES] = "dispatches", [COUNT_BARRIERS] = "barriers", [COUNT_COMMITS] = "commits",
    [COUNT_VIOLATIONS] = "violations", [COUNT_DIGEST] = "digest",
    [COUNT_RESIDENT] = "resident",
    [COUNT_MUTANTS] = "mutants",
};
static long counters[NUM_COUNTERS];

static const char *const EVENTS[] = {"defaultDevice", "allDevices",    "queue",   "buffer", "library", "function",
                                     "pipeline",      "residencySet", "commandBuffer", "encoder", "run"};
enum { NUM_EVENTS = sizeof EVENTS / sizeof *EVENTS, MAX_LINES = 1000 };
static struct failure failures[NUM_EVENTS];

struct lines {
  char *text[MAX_LINES];
  long size;
};
static struct lines violations, notes;

static char kernels_error[512];
static const struct lily_kernel_info *(*find)(const char *);
static __typeof__(&lily_run_kernel) run;

static void clear(struct lines *l) {
  for (long i = 0; i < l->size; i++) free(l->text[i]);
  l->size = 0;
}

static void add(struct lines *l, const char *format, va_list arguments) {
  char text[1024];
  vsnprintf(text, sizeof text, format, arguments);
  pthread_mutex_lock(&lock);
  if (l->size < MAX_LINES) l->text[l->size++] = strdup(text);
  pthread_mutex_unlock(&lock);
}

void violation(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  add(&violations, format, arguments);
  va_end(arguments);
  count(COUNT_VIOLATIONS, 1);
}

void note(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  add(&notes, format, arguments);
  va_end(arguments);
}

const char *double_violation_at(long index) {
  return index < violations.size ? violations.text[index] : NULL;
}

const char *double_note_at(long index) {
  return index < notes.size ? notes.text[index] : NULL;
}

void double_clear_violations(void) {
  clear(&violations);
  counters[COUNT_VIOLATIONS] = 0;
}

long setting(enum setting which) { return settings[which]; }

long count(enum counter which, long delta) {
  return __atomic_add_fetch(&counters[which], delta, __ATOMIC_RELAXED);
}

void double_set(const char *name, long value) {
  for (int i = 0; i < NUM_SETTINGS; i++) {
    if (!strcmp(SETTINGS[i].name, name)) {
      settings[i] = value;
      return;
    }
  }
  violation("the double has no setting '%s'", name);
}

long double_get(const char *name) {
  for (int i = 0; i < NUM_SETTINGS; i++) {
    if (!strcmp(SETTINGS[i].name, name)) return settings[i];
  }
  for (int i = 0; i < NUM_COUNTERS; i++) {
    if (!strcmp(COUNTERS[i], name)) return count(i, 0);
  }
  if (!strcmp(name, "pools")) return pool_depth();
  violation("the double has no setting or counter '%s'", name);
  return -1;
}

void double_fail(const char *event, long after, const char *domain, long code, const char *text) {
  for (int i = 0; i < NUM_EVENTS; i++) {
    if (strcmp(EVENTS[i], event)) continue;
    struct failure *f = &failures[i];
    f->after = after;
    f->code = code;
    snprintf(f->domain, sizeof f->domain, "%s", domain);
    snprintf(f->text, sizeof f->text, "%s", text);
    f->armed = true;
    return;
  }
  violation("the double has no event '%s'", event);
}

const struct failure *fails(const char *event) {
  for (int i = 0; i < NUM_EVENTS; i++) {
    struct failure *f = &failures[i];
    if (strcmp(EVENTS[i], event) || !f->armed || f->after-- > 0) continue;
    f->armed = false;
    return f;
  }
  return NULL;
}

const char *double_text(const char *name) { return strcmp(name, "kernels") ? NULL : kernels_error; }

int double_load_kernels(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library) {
    find = (const struct lily_kernel_info *(*)(const char *))dlsym(library, "lily_find_kernel");
    run = (__typeof__(run))dlsym(library, "lily_run_kernel");
    if (find && run) return 0;
  }
  snprintf(kernels_error, sizeof kernels_error, "%s", dlerror());
  return -1;
}

/* A whole application can run on the double: the kernels then come from the environment. */
__attribute__((constructor)) static void load_kernels_of_environment(void) {
  const char *path = getenv("LILY_METAL_DOUBLE_KERNELS");
  if (path && double_load_kernels(path)) fprintf(stderr, "Metal double: %s\n", kernels_error);
}

const struct lily_kernel_info *find_kernel(const char *name) { return find ? find(name) : NULL; }

int run_kernel(const char *name, void *const *buffers, const uint64_t *buffer_bytes, uint64_t threadgroup_bytes,
               const uint32_t groups[3], const uint32_t threads[3], uint32_t flags, struct lily_report *report) {
  return run(name, buffers, buffer_bytes, threadgroup_bytes, groups, threads, flags, report);
}

__attribute__((constructor)) void double_reset(void) {
  clear(&violations);
  clear(&notes);
  for (int i = 0; i < NUM_SETTINGS; i++) settings[i] = SETTINGS[i].initial;
  for (int i = 0; i < NUM_EVENTS; i++) failures[i].armed = false;
  for (int i = 0; i < NUM_COUNTERS; i++) {
    if (i != COUNT_LIVE && i != COUNT_ALLOCATED) counters[i] = 0;
  }
  free_released_objects();
}
