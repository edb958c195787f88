/*
 * Hazards among the dispatches of a concurrent encoder. Two of them that no barrier separates must not touch the
 * same bytes unless both only read. A barrier orders something if, without it, such a pair would exist: if a dispatch
 * of the segment after it conflicts with one of the segment before it. (Pairs further apart have another barrier
 * between them.)
 */
#include "double.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ranges_clear(struct ranges *r) { r->size = 0; }

void ranges_free(struct ranges *r) {
  free(r->items);
  memset(r, 0, sizeof *r);
}

void ranges_add(struct ranges *r, uint64_t begin, uint64_t end) {
  if (begin >= end) return;
  long low = 0, high = r->size; /* first range that ends at or after begin */
  while (low < high) {
    long middle = (low + high) / 2;
    if (r->items[middle][1] < begin) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  long last = low; /* first range that starts after end */
  while (last < r->size && r->items[last][0] <= end) {
    if (r->items[last][0] < begin) begin = r->items[last][0];
    if (r->items[last][1] > end) end = r->items[last][1];
    last++;
  }
  if (last == low && r->size == r->capacity) {
    r->capacity = r->capacity ? r->capacity * 2 : 64;
    r->items = realloc(r->items, (size_t)r->capacity * sizeof *r->items);
  }
  if (last != low + 1) {
    memmove(r->items + low + 1, r->items + last, (size_t)(r->size - last) * sizeof *r->items);
    r->size += low + 1 - last;
  }
  r->items[low][0] = begin;
  r->items[low][1] = end;
}

/* The first address that both touch, or 0. */
static uint64_t overlap(const struct ranges *a, const struct ranges *b) {
  for (long i = 0, j = 0; i < a->size && j < b->size;) {
    uint64_t begin = a->items[i][0] > b->items[j][0] ? a->items[i][0] : b->items[j][0];
    if (begin < a->items[i][1] && begin < b->items[j][1]) return begin;
    if (a->items[i][1] < b->items[j][1]) {
      i++;
    } else {
      j++;
    }
  }
  return 0;
}

static void merge(struct ranges *into, const struct ranges *from) {
  for (long i = 0; i < from->size; i++) ranges_add(into, from->items[i][0], from->items[i][1]);
}

static void append(char **names, const char *name) {
  size_t length = *names ? strlen(*names) : 0;
  if (length > 200 || (*names && strstr(*names, name))) return;
  char *longer = realloc(*names, length + strlen(name) + 2);
  sprintf(longer + length, "%s%s", length ? " " : "", name);
  *names = longer;
}

static void footprint_free(struct footprint *f) {
  ranges_free(&f->reads);
  ranges_free(&f->writes);
  free(f->readers);
  free(f->writers);
  memset(f, 0, sizeof *f);
}

static bool conflicts(const struct footprint *f, const struct ranges *reads, const struct ranges *writes) {
  return overlap(&f->writes, reads) || overlap(&f->writes, writes) || overlap(&f->reads, writes);
}

void hazards_begin(struct hazards *h) {
  memset(h, 0, sizeof *h);
  h->barrier = -1;
}

static void judge_barrier(const struct hazards *h) {
  if (!h->quiet && h->barrier >= 0 && !h->barrier_needed) {
    note("barrier %ld orders nothing: before it {%s}, after it {%s}", h->barrier,
         h->before.writers ? h->before.writers : "", h->now.writers ? h->now.writers : "");
  }
}

static struct trace *trace(struct hazards *h, const char *kernel) {
  struct trace *last = h->trace;
  while (last->next) last = last->next;
  struct trace *entry = last->next = calloc(1, sizeof *entry);
  entry->kernel = kernel;
  return entry;
}

void hazards_barrier(struct hazards *h, long number) {
  if (h->trace) trace(h, NULL)->barrier = number;
  judge_barrier(h);
  footprint_free(&h->before);
  h->before = h->now;
  memset(&h->now, 0, sizeof h->now);
  h->barrier_needed = false;
  h->barrier = number;
}

static void hazard(struct hazards *h, const char *kernel, const char *does, uint64_t at, const char *others,
                   const char *did) {
  h->violated = true;
  if (h->quiet) return;
  violation("hazard: %s %s 0x%lx, which one of {%s} %s; a barrier is missing", kernel, does, at, others, did);
}

void hazards_dispatch(struct hazards *h, const char *kernel, const struct ranges *reads, const struct ranges *writes) {
  uint64_t at;
  if ((at = overlap(&h->now.writes, reads))) {
    hazard(h, kernel, "reads", at, h->now.writers, "writes");
  } else if ((at = overlap(&h->now.writes, writes))) {
    hazard(h, kernel, "writes", at, h->now.writers, "writes");
  } else if ((at = overlap(&h->now.reads, writes))) {
    hazard(h, kernel, "writes", at, h->now.readers, "reads");
  }
  if (h->trace) {
    struct trace *entry = trace(h, kernel);
    merge(&entry->reads, reads);
    merge(&entry->writes, writes);
  }
  h->barrier_needed |= conflicts(&h->before, reads, writes);
  merge(&h->now.reads, reads);
  merge(&h->now.writes, writes);
  append(&h->now.readers, kernel);
  if (writes->size) append(&h->now.writers, kernel);
}

void hazards_mutate(struct hazards *h) { h->trace = calloc(1, sizeof *h->trace); }

/* Whether the check finds a hazard in what was traced when one barrier is left out. */
static bool misses(const struct trace *first, const struct trace *dropped) {
  struct hazards mutant;
  hazards_begin(&mutant);
  mutant.quiet = true;
  for (const struct trace *t = first->next; t && !mutant.violated; t = t->next) {
    if (t->kernel) {
      hazards_dispatch(&mutant, t->kernel, &t->reads, &t->writes);
    } else if (t != dropped) {
      hazards_barrier(&mutant, t->barrier);
    }
  }
  bool violated = mutant.violated;
  hazards_end(&mutant);
  return violated;
}

static void mutate(struct trace *first) {
  for (struct trace *t = first->next; t; t = t->next) {
    if (t->kernel) continue;
    count(COUNT_MUTANTS, 1);
    if (!misses(first, t)) note("barrier %ld can be left out unnoticed", t->barrier);
  }
  for (struct trace *t = first, *next; t; t = next) {
    next = t->next;
    ranges_free(&t->reads);
    ranges_free(&t->writes);
    free(t);
  }
}

void hazards_end(struct hazards *h) {
  judge_barrier(h);
  footprint_free(&h->before);
  footprint_free(&h->now);
  if (h->trace) mutate(h->trace);
  h->trace = NULL;
}
