/* The double's Metal classes. */
#ifndef LILY_DOUBLE_METAL_H
#define LILY_DOUBLE_METAL_H

#include "foundation.h"

typedef struct MTLSize {
  NSUInteger width, height, depth;
} MTLSize;

enum { MAX_THREADGROUP_BYTES = 32768 };

@interface DoubleResource : NSObject
@end

@interface DoubleBuffer : DoubleResource {
 @public
  char *memory;
  NSUInteger length;
  bool owned, shared, writable;
}
@end

@interface DoubleComputePipelineState : NSObject {
 @public
  const struct lily_kernel_info *kernel;
}
- (NSUInteger)maxTotalThreadsPerThreadgroup;
@end

@class DoubleCommandBuffer;

@interface DoubleCommandQueue : NSObject {
 @public
  NSUInteger max_open, open;
  NSArray *residency_sets;
  NSArray *committed; /* command buffers that have not run, in the order of their commits */
}
- (id)initWithCapacity:(NSUInteger)capacity;
- (void)runUpTo:(DoubleCommandBuffer *)last;
@end

#endif
