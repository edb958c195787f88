/*
 * Writes what a command buffer dispatches to a text file, one command a line:
 *   buffer ID LENGTH poison | zero | large | data HEX     before its first use; large: contents left out
 *   dispatch KERNEL GX GY GZ TX TY TZ BLOCK_BYTES then for each index @ID+OFFSET (a buffer) or =HEX (bytes)
 *   barrier
 */
#include "double.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BUFFERS = 8192, MAX_DATA = 1 << 16, MAX_SCANNED = 4 << 20 };

static FILE *out;
static struct {
  const char *memory;
  uint64_t length;
} buffers[MAX_BUFFERS];
static long num_buffers;

int double_trace(const char *path) {
  if (out && fclose(out)) violation("the trace could not be written");
  out = path && *path ? fopen(path, "w") : NULL;
  num_buffers = 0;
  return out || !path || !*path ? 0 : -1;
}

bool trace_is_open(void) { return out != NULL; }

static void write_hex(const char *bytes, uint64_t size) {
  for (uint64_t i = 0; i < size; i++) fprintf(out, "%02x", (unsigned char)bytes[i]);
}

static bool is_all(const char *bytes, uint64_t size, char value) {
  return bytes[0] == value && !memcmp(bytes, bytes + 1, size - 1);
}

static void write_contents(const char *memory, uint64_t length) {
  if (length > MAX_SCANNED) {
    fprintf(out, "large");
  } else if (is_all(memory, length, (char)0xFF)) {
    fprintf(out, "poison");
  } else if (is_all(memory, length, 0)) {
    fprintf(out, "zero");
  } else if (length > MAX_DATA) {
    fprintf(out, "large");
  } else {
    fprintf(out, "data ");
    write_hex(memory, length);
  }
}

long trace_buffer(const char *memory, uint64_t length) {
  for (long i = 0; i < num_buffers; i++) {
    if (buffers[i].memory == memory && buffers[i].length == length) return i;
  }
  if (num_buffers == MAX_BUFFERS) {
    violation("the trace takes %d buffers at most", MAX_BUFFERS);
    return 0;
  }
  buffers[num_buffers].memory = memory;
  buffers[num_buffers].length = length;
  fprintf(out, "buffer %ld %lu ", num_buffers, length);
  write_contents(memory, length);
  fputc('\n', out);
  return num_buffers++;
}

void trace_dispatch(const char *kernel, const uint64_t groups[3], const uint64_t threads[3], uint64_t block_bytes) {
  fprintf(out, "dispatch %s %lu %lu %lu %lu %lu %lu %lu", kernel, groups[0], groups[1], groups[2], threads[0],
          threads[1], threads[2], block_bytes);
}

void trace_bound(long buffer, uint64_t offset) { fprintf(out, " @%ld+%lu", buffer, offset); }

void trace_bytes(const char *bytes, uint64_t length) {
  fprintf(out, " =");
  write_hex(bytes, length);
}

void trace_end(void) { fputc('\n', out); }

void trace_barrier(void) {
  if (out) fprintf(out, "barrier\n");
}
