/* Device, buffers, libraries, pipelines, residency sets. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "metal.h"

enum { PRIVATE = 0x20, POISONED_BYTES = 64 << 20 };

@implementation DoubleResource
- (void)setLabel:(NSString *)label {
  is_alive(label, "setLabel");
}
@end

@implementation DoubleBuffer
- (void *)contents {
  return shared ? memory : NULL;
}
- (void)dealloc {
  count(COUNT_ALLOCATED, -(long)length);
  if (owned) munmap(memory, length);
  [super dealloc];
}
@end

/* Whether a page may be written: a mapped file of weights may not. */
static bool is_writable(const void *address) {
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[512], mode[5];
  bool writable = false;
  while (maps && fgets(line, sizeof line, maps)) {
    uintptr_t begin, end;
    if (sscanf(line, "%lx-%lx %4s", &begin, &end, mode) != 3) continue;
    if ((uintptr_t)address >= begin && (uintptr_t)address < end) {
      writable = mode[1] == 'w';
      break;
    }
  }
  if (maps) fclose(maps);
  return writable;
}

@interface MTLCompileOptions : NSObject {
 @public
  NSUInteger language;
}
@end
@implementation MTLCompileOptions
- (void)setLanguageVersion:(NSUInteger)version {
  language = version;
}
- (void)setMathMode:(NSInteger)mode {
  if (mode < 0 || mode > 2) violation("MTLCompileOptions: math mode %ld", mode);
}
@end

@interface DoubleFunction : NSObject {
 @public
  const struct lily_kernel_info *kernel;
}
@end
@implementation DoubleFunction
@end

@interface DoubleLibrary : NSObject
@end
@implementation DoubleLibrary
- (DoubleFunction *)newFunctionWithName:(NSString *)name {
  if (!is_alive(name, "newFunctionWithName:") || fails("function")) return nil;
  const struct lily_kernel_info *kernel = find_kernel(name->text);
  if (!kernel) return nil;
  DoubleFunction *function = [DoubleFunction new];
  function->kernel = kernel;
  return function;
}
@end

@implementation DoubleComputePipelineState
- (NSUInteger)maxTotalThreadsPerThreadgroup {
  return setting(SET_MAX_THREADS) ? (NSUInteger)setting(SET_MAX_THREADS) : kernel->max_threads;
}
- (NSUInteger)threadExecutionWidth {
  return 32;
}
- (NSUInteger)staticThreadgroupMemoryLength {
  return kernel->static_threadgroup_bytes;
}
@end

@interface MTLResidencySetDescriptor : NSObject
@end
@implementation MTLResidencySetDescriptor
- (void)setInitialCapacity:(NSUInteger)capacity {
}
@end

@interface DoubleResidencySet : NSObject {
  NSArray *buffers;
  NSUInteger committed_bytes;
  bool requested;
}
@end
@implementation DoubleResidencySet
- (id)init {
  buffers = [NSArray new];
  return self;
}
- (void)addAllocation:(DoubleBuffer *)buffer {
  if (is_alive(buffer, "addAllocation:")) [buffers add:buffer];
}
- (void)removeAllocation:(DoubleBuffer *)buffer {
  for (NSUInteger i = 0; i < buffers->size; i++) {
    if (buffers->items[i] == buffer) {
      [buffers removeAt:i];
      return;
    }
  }
  violation("removeAllocation: of a buffer that the residency set does not have");
}
- (void)countResident:(long)sign {
  if (requested) count(COUNT_RESIDENT, sign * (long)committed_bytes);
}
- (void)commit {
  [self countResident:-1];
  committed_bytes = 0;
  for (NSUInteger i = 0; i < buffers->size; i++) committed_bytes += ((DoubleBuffer *)buffers->items[i])->length;
  [self countResident:1];
}
- (void)requestResidency {
  [self countResident:-1];
  requested = true;
  [self countResident:1];
}
- (void)endResidency {
  if (!requested) violation("endResidency without requestResidency");
  [self countResident:-1];
  requested = false;
}
- (uint64_t)allocatedSize {
  return committed_bytes;
}
- (void)dealloc {
  [buffers release];
  [super dealloc];
}
@end

@interface DoubleArchitecture : NSObject
@end
@implementation DoubleArchitecture
- (NSString *)name {
  return [NSString withText:"applegpu_double"];
}
@end

@interface DoubleDevice : NSObject
@end
@implementation DoubleDevice
- (BOOL)respondsToSelector:(SEL)selector {
  bool macos15 = !strcmp(sel_getName(selector), "newResidencySetWithDescriptor:error:");
  return macos15 && setting(SET_MACOS) < 15 ? NO : [super respondsToSelector:selector];
}
- (NSString *)name {
  return [NSString withText:"Metal double"];
}
- (DoubleArchitecture *)architecture {
  return [[DoubleArchitecture new] autorelease];
}
- (BOOL)supportsFamily:(NSInteger)family {
  switch (family) {
    case 5001:
      return YES;
    case 5002:
      return setting(SET_METAL4) != 0;
    default:
      return family > 1000 && family <= setting(SET_FAMILY);
  }
}
- (BOOL)hasUnifiedMemory {
  return setting(SET_UNIFIED) != 0;
}
- (uint64_t)recommendedMaxWorkingSetSize {
  return (uint64_t)setting(SET_RECOMMENDED);
}
- (NSUInteger)currentAllocatedSize {
  return (NSUInteger)count(COUNT_ALLOCATED, 0);
}
- (NSUInteger)maxBufferLength {
  return (NSUInteger)setting(SET_MAX_BUFFER);
}
- (NSUInteger)maxThreadgroupMemoryLength {
  return MAX_THREADGROUP_BYTES;
}
- (DoubleCommandQueue *)newCommandQueueWithMaxCommandBufferCount:(NSUInteger)capacity {
  if (capacity == 0) violation("a command queue for no command buffers");
  return fails("queue") ? nil : [[DoubleCommandQueue alloc] initWithCapacity:capacity];
}
- (DoubleBuffer *)bufferOver:(void *)memory length:(NSUInteger)length options:(NSUInteger)options {
  if (options & ~(NSUInteger)PRIVATE) violation("a buffer with resource options 0x%lx", options);
  DoubleBuffer *buffer = [DoubleBuffer new];
  buffer->memory = memory;
  buffer->length = length;
  buffer->shared = !(options & PRIVATE);
  buffer->writable = is_writable(memory);
  count(COUNT_ALLOCATED, (long)length);
  return buffer;
}
- (DoubleBuffer *)newBufferWithLength:(NSUInteger)length options:(NSUInteger)options {
  if (length == 0 || length > [self maxBufferLength]) {
    violation("newBufferWithLength: %lu bytes", length);
    return nil;
  }
  if (fails("buffer")) return nil;
  void *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nil;
  memset(memory, 0xFF, length < POISONED_BYTES ? length : POISONED_BYTES); /* NaN in every float format */
  DoubleBuffer *buffer = [self bufferOver:memory length:length options:options];
  buffer->owned = true;
  return buffer;
}
- (DoubleBuffer *)newBufferWithBytesNoCopy:(void *)memory
                                    length:(NSUInteger)length
                                   options:(NSUInteger)options
                               deallocator:(id)deallocator {
  NSUInteger page = (NSUInteger)getpagesize();
  if (deallocator) violation("newBufferWithBytesNoCopy: the double calls no deallocator");
  if ((uintptr_t)memory % page || length % page || length == 0) {
    violation("newBufferWithBytesNoCopy: %p, %lu bytes, is not made of whole pages", memory, length);
    return nil;
  }
  return fails("buffer") ? nil : [self bufferOver:memory length:length options:options];
}
- (DoubleLibrary *)newLibraryWithSource:(NSString *)source
                                options:(MTLCompileOptions *)options
                                  error:(NSError **)error {
  if (!is_alive(source, "newLibraryWithSource:") || !is_alive(options, "newLibraryWithSource: options")) return nil;
  const struct failure *failure = fails("library");
  if (failure) {
    *error = [NSError withFailure:failure];
  } else if ((long)options->language > setting(SET_LANGUAGE)) {
    *error = [NSError withDomain:"MTLLibraryErrorDomain" code:3 text:"invalid value for language version"];
  } else if (!strstr(source->text, "#include <metal_stdlib>")) {
    *error = [NSError withDomain:"MTLLibraryErrorDomain"
                            code:3
                            text:"program_source:1:1: error: use of undeclared identifier 'metal'"];
  } else {
    /* As Metal does for a warning: an error object that must not be taken for a failure. */
    *error = [NSError withDomain:"MTLLibraryErrorDomain" code:4 text:"program_source:1:1: warning: unused"];
    return [DoubleLibrary new];
  }
  return nil;
}
- (DoubleComputePipelineState *)newComputePipelineStateWithFunction:(DoubleFunction *)function
                                                              error:(NSError **)error {
  if (!is_alive(function, "newComputePipelineStateWithFunction:")) return nil;
  const struct failure *failure = fails("pipeline");
  if (failure) {
    *error = [NSError withFailure:failure];
    return nil;
  }
  DoubleComputePipelineState *pipeline = [DoubleComputePipelineState new];
  pipeline->kernel = function->kernel;
  return pipeline;
}
- (DoubleResidencySet *)newResidencySetWithDescriptor:(MTLResidencySetDescriptor *)descriptor
                                                error:(NSError **)error {
  if (!is_alive(descriptor, "newResidencySetWithDescriptor:")) return nil;
  const struct failure *failure = fails("residencySet");
  if (failure) {
    *error = [NSError withFailure:failure];
    return nil;
  }
  return [DoubleResidencySet new];
}
@end

id MTLCreateSystemDefaultDevice(void) { return fails("defaultDevice") ? nil : [DoubleDevice new]; }

id MTLCopyAllDevices(void) {
  if (fails("allDevices")) return nil;
  NSArray *devices = [NSArray new];
  DoubleDevice *device = [DoubleDevice new];
  [devices add:device];
  [device release];
  return devices;
}
