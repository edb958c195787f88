/* Queue, command buffer, compute encoder: checks what is encoded, runs it late, follows hazards. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "metal.h"

enum { STATUS_RECORDING = 0, STATUS_COMMITTED = 2, STATUS_SCHEDULED = 3, STATUS_COMPLETED = 4, STATUS_ERROR = 5 };
enum { ERROR_INTERNAL = 1, ERROR_PAGE_FAULT = 3 };
enum { NUM_THREADGROUP_INDICES = 31, MAX_BYTES = 4096, MAX_RESIDENCY_SETS = 32, BLOCK_BYTES = 1 << 16, CONSTANT_ALIGNMENT = 256 };

struct binding {
  DoubleBuffer *buffer; /* or */
  char *bytes;
  NSUInteger offset, length; /* bytes from the argument to the end of what is bound */
};

enum command_type { ENCODER, DISPATCH, BARRIER };

struct command {
  struct command *next;
  enum command_type type;
  NSUInteger dispatch_type;
  DoubleComputePipelineState *pipeline;
  struct binding *bindings; /* as many as the kernel has buffers */
  NSUInteger threadgroup_bytes;
  MTLSize groups, threads;
  DoubleBuffer *indirect; /* nil for a grid given by value */
  NSUInteger indirect_offset;
};

struct block {
  struct block *next;
  size_t used;
  char memory[BLOCK_BYTES];
};

@class DoubleComputeCommandEncoder;

@interface DoubleCommandBuffer : NSObject {
 @public
  DoubleCommandQueue *queue;
  DoubleComputeCommandEncoder *encoder; /* the open one, not retained */
  NSUInteger status;
  NSError *error;
  struct command *first, **end;
  struct block *blocks;
  bool asked, invalid, counted;
  double start, stop;
}
- (void)run;
@end

@interface DoubleComputeCommandEncoder : NSObject {
 @public
  DoubleCommandBuffer *commands;
  DoubleComputePipelineState *pipeline;
  struct binding bindings[LILY_MAX_BUFFERS];
  NSUInteger threadgroup_bytes[NUM_THREADGROUP_INDICES];
  bool threadgroup_set;
}
@end

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Memory that lives as long as the command buffer. */
static void *allocate(DoubleCommandBuffer *commands, size_t bytes) {
  bytes = (bytes + 15) & ~(size_t)15;
  if (!commands->blocks || commands->blocks->used + bytes > BLOCK_BYTES) {
    struct block *block = malloc(sizeof *block);
    block->next = commands->blocks;
    block->used = 0;
    commands->blocks = block;
  }
  void *memory = commands->blocks->memory + commands->blocks->used;
  commands->blocks->used += bytes;
  return memory;
}

static struct command *append(DoubleCommandBuffer *commands, enum command_type type) {
  struct command *command = allocate(commands, sizeof *command);
  memset(command, 0, sizeof *command);
  command->type = type;
  *commands->end = command;
  commands->end = &command->next;
  return command;
}

/* ---- encoder --------------------------------------------------------------------------------------------------- */

#define REFUSE(...)             \
  do {                          \
    violation(__VA_ARGS__);     \
    commands->invalid = true;   \
    return;                     \
  } while (0)

#define REQUIRE_OPEN(message)                                                                                 \
  do {                                                                                                        \
    if (commands->encoder != self) {                                                                          \
      violation("%s on an encoder that has ended", message);                                                  \
      return;                                                                                                 \
    }                                                                                                         \
  } while (0)

@implementation DoubleComputeCommandEncoder
- (void)setComputePipelineState:(DoubleComputePipelineState *)state {
  REQUIRE_OPEN("setComputePipelineState:");
  if (!is_alive(state, "setComputePipelineState")) REFUSE("setComputePipelineState: refused");
  pipeline = state;
}
- (void)setBuffer:(DoubleBuffer *)buffer offset:(NSUInteger)offset atIndex:(NSUInteger)index {
  REQUIRE_OPEN("setBuffer:offset:atIndex:");
  if (index >= LILY_MAX_BUFFERS) REFUSE("setBuffer: index %lu is above 30", index);
  if (!is_alive(buffer, "setBuffer")) REFUSE("setBuffer: refused at index %lu", index);
  if (offset >= buffer->length) REFUSE("setBuffer: offset %lu of a buffer of %lu bytes", offset, buffer->length);
  bindings[index] = (struct binding){.buffer = buffer, .offset = offset, .length = buffer->length - offset};
}
- (void)setBufferOffset:(NSUInteger)offset atIndex:(NSUInteger)index {
  REQUIRE_OPEN("setBufferOffset:atIndex:");
  if (index >= LILY_MAX_BUFFERS || !bindings[index].buffer) REFUSE("setBufferOffset: no buffer at index %lu", index);
  [self setBuffer:bindings[index].buffer offset:offset atIndex:index];
}
- (void)setBuffers:(DoubleBuffer **)buffers offsets:(const NSUInteger *)offsets withRange:(NSRange)range {
  REQUIRE_OPEN("setBuffers:offsets:withRange:");
  for (NSUInteger i = 0; i < range.length; i++) {
    [self setBuffer:buffers[i] offset:offsets[i] atIndex:range.location + i];
  }
}
- (void)setBytes:(const void *)bytes length:(NSUInteger)length atIndex:(NSUInteger)index {
  REQUIRE_OPEN("setBytes:length:atIndex:");
  if (index >= LILY_MAX_BUFFERS) REFUSE("setBytes: index %lu is above 30", index);
  if (!bytes || length == 0 || length > MAX_BYTES) REFUSE("setBytes: %lu bytes", length);
  char *copy = memcpy(allocate(commands, length), bytes, length);
  bindings[index] = (struct binding){.bytes = copy, .length = length};
}
- (void)setThreadgroupMemoryLength:(NSUInteger)length atIndex:(NSUInteger)index {
  REQUIRE_OPEN("setThreadgroupMemoryLength:atIndex:");
  if (index >= NUM_THREADGROUP_INDICES) REFUSE("setThreadgroupMemoryLength: index %lu is above 30", index);
  if (length % 16) REFUSE("setThreadgroupMemoryLength: %lu is no multiple of 16", length);
  threadgroup_bytes[index] = length;
  threadgroup_set = true;
}
- (NSUInteger)totalThreadgroupBytes {
  NSUInteger total = pipeline->kernel->static_threadgroup_bytes;
  for (int i = 0; i < NUM_THREADGROUP_INDICES; i++) total += threadgroup_bytes[i];
  return total;
}
/* The argument at an index must be bound, aligned, long enough, and writable if the kernel writes it. */
- (bool)isBound:(uint32_t)index {
  const struct lily_kernel_info *kernel = pipeline->kernel;
  const struct lily_buffer_info *wanted = &kernel->buffers[index];
  const struct binding *bound = &bindings[index];
  if (!bound->buffer && !bound->bytes) {
    violation("%s: nothing is bound to index %u (%s)", kernel->name, index, wanted->name);
    return false;
  }
  if (bound->buffer && !is_alive(bound->buffer, kernel->name)) return false;
  if (bound->length < wanted->element_size) {
    violation("%s: %lu bytes are bound to index %u (%s), an element has %u", kernel->name, bound->length, index,
              wanted->name, wanted->element_size);
    return false;
  }
  uintptr_t address = bound->buffer ? (uintptr_t)bound->buffer->memory + bound->offset : (uintptr_t)bound->bytes;
  if (wanted->alignment && address % wanted->alignment) {
    violation("%s: offset %lu at index %u (%s) is no multiple of %u", kernel->name, bound->offset, index, wanted->name,
              wanted->alignment);
    return false;
  }
  if (bound->buffer && wanted->kind == LILY_CONSTANT && bound->offset % CONSTANT_ALIGNMENT) {
    violation("%s: offset %lu at index %u (%s), a constant, is no multiple of %u", kernel->name, bound->offset, index,
              wanted->name, CONSTANT_ALIGNMENT);
    return false;
  }
  if (bound->buffer && !bound->buffer->writable && (wanted->access & LILY_WRITE)) {
    violation("%s: index %u (%s) is written, but wraps read-only memory", kernel->name, index, wanted->name);
    return false;
  }
  if (bound->bytes && (wanted->access & LILY_WRITE)) {
    violation("%s: index %u (%s) is written, but setBytes: bound it", kernel->name, index, wanted->name);
    return false;
  }
  return true;
}
- (struct command *)dispatch:(const char *)message threads:(MTLSize)threads {
  if (commands->encoder != self) {
    violation("%s on an encoder that has ended", message);
    return NULL;
  }
  bool invalid_before = commands->invalid;
  commands->invalid = true; /* until all is found well */
  if (!pipeline) {
    violation("%s without a pipeline", message);
    return NULL;
  }
  const struct lily_kernel_info *kernel = pipeline->kernel;
  NSUInteger total = threads.width * threads.height * threads.depth;
  if (total == 0 || total > [pipeline maxTotalThreadsPerThreadgroup]) {
    violation("%s: %lu threads a threadgroup, the pipeline takes 1 to %lu", kernel->name, total,
              [pipeline maxTotalThreadsPerThreadgroup]);
    return NULL;
  }
  if (kernel->uses_threadgroup_block && !threadgroup_bytes[0]) {
    violation("%s: no length is set for threadgroup memory 0", kernel->name);
    return NULL;
  }
  if ([self totalThreadgroupBytes] > MAX_THREADGROUP_BYTES) {
    violation("%s: %lu bytes of threadgroup memory", kernel->name, [self totalThreadgroupBytes]);
    return NULL;
  }
  for (uint32_t i = 0; i < kernel->num_buffers; i++) {
    if (![self isBound:i]) return NULL;
  }
  commands->invalid = invalid_before;
  struct command *command = append(commands, DISPATCH);
  command->pipeline = pipeline;
  command->threads = threads;
  command->threadgroup_bytes = threadgroup_bytes[0];
  size_t size = kernel->num_buffers * sizeof(struct binding);
  command->bindings = memcpy(allocate(commands, size), bindings, size);
  return command;
}
- (void)dispatchThreadgroups:(MTLSize)groups threadsPerThreadgroup:(MTLSize)threads {
  struct command *command = [self dispatch:"dispatchThreadgroups:" threads:threads];
  if (!command) return;
  command->groups = groups;
  if (groups.width * groups.height * groups.depth == 0) REFUSE("%s: a grid of no threadgroups", pipeline->kernel->name);
}
- (void)dispatchThreadgroupsWithIndirectBuffer:(DoubleBuffer *)buffer
                          indirectBufferOffset:(NSUInteger)offset
                         threadsPerThreadgroup:(MTLSize)threads {
  struct command *command = [self dispatch:"dispatchThreadgroupsWithIndirectBuffer:" threads:threads];
  if (!command) return;
  if (!is_alive(buffer, "indirect buffer")) REFUSE("%s: no indirect buffer", pipeline->kernel->name);
  if (offset % 4 || offset + 12 > buffer->length) REFUSE("%s: indirect counts at %lu", pipeline->kernel->name, offset);
  command->indirect = buffer;
  command->indirect_offset = offset;
}
- (void)memoryBarrierWithScope:(NSUInteger)scope {
  REQUIRE_OPEN("memoryBarrierWithScope:");
  if (scope != 1) REFUSE("memoryBarrierWithScope: %lu", scope);
  append(commands, BARRIER);
}
- (void)endEncoding {
  REQUIRE_OPEN("endEncoding");
  commands->encoder = nil;
}
- (void)dealloc {
  if (commands->encoder == self) {
    violation("a compute encoder is released without endEncoding");
    commands->encoder = nil;
    commands->invalid = true;
  }
  [commands release];
  [super dealloc];
}
@end

/* ---- command buffer -------------------------------------------------------------------------------------------- */

static void touch(struct ranges *ranges, const struct binding *bound, const struct lily_range *touched, uint64_t size) {
  uint64_t base = (uint64_t)(uintptr_t)bound->buffer->memory + bound->offset;
  for (uint64_t i = 0; i < size; i++) ranges_add(ranges, base + touched[i].begin, base + touched[i].end);
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size) {
  for (size_t i = 0; i < size; i++) hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3;
  return hash;
}

@implementation DoubleCommandBuffer
- (id)initWithQueue:(DoubleCommandQueue *)parent {
  queue = [parent retain];
  queue->open++;
  counted = true;
  end = &first;
  return self;
}
- (DoubleComputeCommandEncoder *)computeCommandEncoderWithDispatchType:(NSUInteger)type {
  if (status != STATUS_RECORDING) {
    violation("an encoder is asked of a committed command buffer");
    return nil;
  }
  if (encoder) {
    violation("an encoder is asked while another one is open");
    return nil;
  }
  if (type > 1) violation("an encoder of dispatch type %lu", type);
  if (fails("encoder")) return nil;
  append(self, ENCODER)->dispatch_type = type;
  encoder = [DoubleComputeCommandEncoder new];
  encoder->commands = [self retain];
  return [encoder autorelease];
}
- (void)commit {
  if (status != STATUS_RECORDING) {
    violation("a command buffer is committed twice");
    return;
  }
  if (encoder) {
    violation("commit without endEncoding");
    invalid = true;
  }
  count(COUNT_COMMITS, 1);
  status = STATUS_COMMITTED;
  [queue->committed add:self];
}
- (void)failWithCode:(NSInteger)code text:(const char *)text {
  status = STATUS_ERROR;
  if (!error) error = [[NSError withDomain:"MTLCommandBufferErrorDomain" code:code text:text] retain];
}
- (bool)runDispatch:(struct command *)command hazards:(struct hazards *)hazards {
  const struct lily_kernel_info *kernel = command->pipeline->kernel;
  void *buffers[LILY_MAX_BUFFERS];
  uint64_t bytes[LILY_MAX_BUFFERS];
  for (uint32_t i = 0; i < kernel->num_buffers; i++) {
    struct binding *bound = &command->bindings[i];
    if (bound->buffer && !is_alive(bound->buffer, kernel->name)) return false;
    buffers[i] = bound->buffer ? bound->buffer->memory + bound->offset : bound->bytes;
    bytes[i] = bound->length;
  }
  uint32_t groups[3] = {(uint32_t)command->groups.width, (uint32_t)command->groups.height,
                        (uint32_t)command->groups.depth};
  uint32_t threads[3] = {(uint32_t)command->threads.width, (uint32_t)command->threads.height,
                         (uint32_t)command->threads.depth};
  static __thread struct ranges reads, writes;
  ranges_clear(&reads);
  ranges_clear(&writes);
  if (command->indirect) {
    if (!is_alive(command->indirect, "indirect buffer")) return false;
    char *counts = command->indirect->memory + command->indirect_offset;
    memcpy(groups, counts, sizeof groups);
    ranges_add(&reads, (uint64_t)(uintptr_t)counts, (uint64_t)(uintptr_t)counts + sizeof groups);
  }
  static __thread struct lily_report report;
  bool track = hazards && setting(SET_TRACK);
  uint32_t flags = (uint32_t)setting(SET_ORDER) | (track ? 0 : LILY_NO_TRACKING);
  bool empty = groups[0] == 0 || groups[1] == 0 || groups[2] == 0; /* allowed when the GPU counted */
  int result = empty ? LILY_OK
                     : run_kernel(kernel->name, buffers, bytes, command->threadgroup_bytes, groups, threads, flags,
                                  &report);
  count(COUNT_DISPATCHES, 1);
  if (result != LILY_OK) {
    violation("%s: %s (status %d)", kernel->name, report.message, result);
    [self failWithCode:result == LILY_OUT_OF_BOUNDS ? ERROR_PAGE_FAULT : ERROR_INTERNAL text:report.message];
    return false;
  }
  if (track && !empty) {
    for (uint32_t i = 0; i < kernel->num_buffers; i++) {
      if (!command->bindings[i].buffer) continue;
      touch(&reads, &command->bindings[i], report.touched[i].reads, report.touched[i].num_reads);
      touch(&writes, &command->bindings[i], report.touched[i].writes, report.touched[i].num_writes);
    }
  }
  if (track) hazards_dispatch(hazards, kernel->name, &reads, &writes);
  return true;
}
/* Kernels, grids, barriers, where buffers start and what constants hold: equal for equal work. */
- (void)digest {
  uint64_t hash = 0xcbf29ce484222325;
  for (struct command *c = first; c; c = c->next) {
    hash = hash_bytes(hash, &c->type, sizeof c->type);
    if (c->type != DISPATCH) continue;
    const struct lily_kernel_info *kernel = c->pipeline->kernel;
    hash = hash_bytes(hash, kernel->name, strlen(kernel->name));
    hash = hash_bytes(hash, &c->groups, sizeof c->groups);
    hash = hash_bytes(hash, &c->threads, sizeof c->threads);
    hash = hash_bytes(hash, &c->threadgroup_bytes, sizeof c->threadgroup_bytes);
    for (uint32_t i = 0; i < kernel->num_buffers; i++) {
      const struct binding *bound = &c->bindings[i];
      const char *address = bound->buffer ? bound->buffer->memory + bound->offset : bound->bytes;
      if (kernel->buffers[i].kind == LILY_CONSTANT) {
        hash = hash_bytes(hash, address, kernel->buffers[i].element_size);
      } else {
        hash = hash_bytes(hash, &address, sizeof address);
      }
    }
  }
  count(COUNT_DIGEST, (long)hash - count(COUNT_DIGEST, 0));
}

- (void)trace:(struct command *)command {
  const struct lily_kernel_info *kernel = command->pipeline->kernel;
  long ids[LILY_MAX_BUFFERS];
  for (uint32_t i = 0; i < kernel->num_buffers; i++) {
    DoubleBuffer *buffer = command->bindings[i].buffer;
    if (kernel->buffers[i].kind == LILY_CONSTANT) continue; /* its bytes are traced, wherever they lie */
    if (buffer && is_alive(buffer, kernel->name)) ids[i] = trace_buffer(buffer->memory, buffer->length);
  }
  uint64_t groups[3] = {command->groups.width, command->groups.height, command->groups.depth};
  uint64_t threads[3] = {command->threads.width, command->threads.height, command->threads.depth};
  if (command->indirect) violation("%s: a trace takes no grid that the GPU counts", kernel->name);
  trace_dispatch(kernel->name, groups, threads, command->threadgroup_bytes);
  for (uint32_t i = 0; i < kernel->num_buffers; i++) {
    struct binding *bound = &command->bindings[i];
    if (kernel->buffers[i].kind == LILY_CONSTANT) {
      trace_bytes(bound->buffer ? bound->buffer->memory + bound->offset : bound->bytes,
                  kernel->buffers[i].element_size);
    } else {
      trace_bound(ids[i], bound->offset);
    }
  }
  trace_end();
}
- (bool)runCommands {
  struct hazards state, *hazards = NULL;
  bool well = true;
  for (struct command *c = first; c && well; c = c->next) {
    switch (c->type) {
      case ENCODER:
        if (hazards) hazards_end(hazards);
        hazards = NULL;
        if (c->dispatch_type == 1) {
          hazards = &state;
          hazards_begin(hazards);
          if (setting(SET_MUTATE)) hazards_mutate(hazards);
        }
        break;
      case BARRIER: {
        long number = count(COUNT_BARRIERS, 1) - 1;
        trace_barrier();
        if (hazards && number != setting(SET_DROP_BARRIER)) hazards_barrier(hazards, number);
        break;
      }
      case DISPATCH:
        if (trace_is_open()) [self trace:c];
        well = is_alive(c->pipeline, "pipeline of a command buffer in flight") &&
               (!setting(SET_RUN) || [self runDispatch:c hazards:hazards]);
        break;
    }
  }
  if (hazards) hazards_end(hazards);
  return well;
}
- (void)complete {
  if (counted) queue->open--;
  counted = false;
}
- (void)run {
  start = now();
  const struct failure *failure = fails("run");
  if (failure) {
    status = STATUS_ERROR;
    error = [[NSError withFailure:failure] retain];
  } else if (invalid) {
    [self failWithCode:ERROR_INTERNAL text:"the validation layer refused a command"];
  } else if ([self digest], [self runCommands]) {
    status = STATUS_COMPLETED;
  } else {
    [self failWithCode:ERROR_INTERNAL text:"the double could not run a command"];
  }
  stop = now();
  [self complete];
}
- (void)waitUntilCompleted {
  if (status == STATUS_RECORDING) violation("waitUntilCompleted before commit");
  if (status == STATUS_COMMITTED) [queue runUpTo:self];
}
- (NSUInteger)status {
  if (status == STATUS_COMMITTED) {
    if (!asked) {
      asked = true;
      return STATUS_SCHEDULED;
    }
    [queue runUpTo:self];
  }
  return status;
}
- (NSError *)error {
  return error;
}
- (double)GPUStartTime {
  return start;
}
- (double)GPUEndTime {
  return stop;
}
- (void)dealloc {
  [self complete];
  for (struct block *block = blocks, *next; block; block = next) {
    next = block->next;
    free(block);
  }
  [error release];
  [queue release];
  [super dealloc];
}
@end

/* ---- queue ----------------------------------------------------------------------------------------------------- */

@implementation DoubleCommandQueue
- (id)initWithCapacity:(NSUInteger)capacity {
  max_open = capacity;
  committed = [NSArray new];
  residency_sets = [NSArray new];
  return self;
}
- (DoubleCommandBuffer *)commandBufferWithUnretainedReferences {
  if (open >= max_open) {
    violation("a command buffer is asked while %lu are open: Metal would block for ever", open);
    return nil;
  }
  if (fails("commandBuffer")) return nil;
  return [[[DoubleCommandBuffer alloc] initWithQueue:self] autorelease];
}
- (void)addResidencySet:(id)set {
  if (!is_alive(set, "addResidencySet:")) return;
  if (residency_sets->size >= MAX_RESIDENCY_SETS) violation("addResidencySet: a queue takes at most 32");
  [residency_sets add:set];
}
- (void)removeResidencySet:(id)set {
  for (NSUInteger i = 0; i < residency_sets->size; i++) {
    if (residency_sets->items[i] == set) {
      [residency_sets removeAt:i];
      return;
    }
  }
  violation("removeResidencySet: of a set that the queue does not have");
}
- (void)runUpTo:(DoubleCommandBuffer *)last {
  bool done = false;
  [self retain];
  while (!done && committed->size) {
    DoubleCommandBuffer *next = committed->items[0];
    done = next == last;
    [next run];
    [committed removeAt:0];
  }
  [self release];
}
- (void)dealloc {
  [committed release];
  [residency_sets release];
  [super dealloc];
}
@end
