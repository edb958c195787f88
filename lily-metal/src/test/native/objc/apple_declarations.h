/*
 * The methods that the binding calls, as Apple's headers declare them: the second, independent table for
 * SelectorTableTest. Availability and nullability marks are left out. Not compiled.
 */

typedef NS_ENUM(NSInteger, MTLGPUFamily);
typedef NS_ENUM(NSUInteger, MTLLanguageVersion);
typedef NS_ENUM(NSInteger, MTLMathMode);
typedef NS_ENUM(NSUInteger, MTLDispatchType);
typedef NS_ENUM(NSUInteger, MTLCommandBufferStatus);
typedef NS_OPTIONS(NSUInteger, MTLResourceOptions);
typedef NS_OPTIONS(NSUInteger, MTLBarrierScope);
typedef NS_ENUM(NSUInteger, NSStringEncoding);

typedef struct { NSUInteger width, height, depth; } MTLSize;
typedef struct _NSRange { NSUInteger location; NSUInteger length; } NSRange;
typedef struct { NSInteger majorVersion; NSInteger minorVersion; NSInteger patchVersion; } NSOperatingSystemVersion;

@interface NSObject
+ (instancetype)new;
+ (instancetype)alloc;
- (BOOL)respondsToSelector:(SEL)aSelector;
@end

@interface NSString
- (instancetype)initWithBytes:(const void *)bytes length:(NSUInteger)len encoding:(NSStringEncoding)encoding;
@property (readonly) const char *UTF8String;
@end

@interface NSError
@property (readonly, copy) NSErrorDomain domain;
@property (readonly) NSInteger code;
@property (readonly, copy) NSString *localizedDescription;
@end

@interface NSArray
@property (readonly) NSUInteger count;
- (ObjectType)objectAtIndex:(NSUInteger)index;
@end

@interface NSProcessInfo
@property (class, readonly, strong) NSProcessInfo *processInfo;
- (BOOL)isOperatingSystemAtLeastVersion:(NSOperatingSystemVersion)version;
@end

@protocol MTLDevice
@property (readonly) NSString *name;
@property (readonly) MTLArchitecture *architecture;
@property (readonly) BOOL hasUnifiedMemory;
@property (readonly) uint64_t recommendedMaxWorkingSetSize;
@property (readonly) NSUInteger maxThreadgroupMemoryLength;
@property (readonly) NSUInteger maxBufferLength;
@property (readonly) NSUInteger currentAllocatedSize;
- (BOOL)supportsFamily:(MTLGPUFamily)gpuFamily;
- (id<MTLCommandQueue>)newCommandQueueWithMaxCommandBufferCount:(NSUInteger)maxCommandBufferCount;
- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)options;
- (id<MTLBuffer>)newBufferWithBytesNoCopy:(void *)pointer length:(NSUInteger)length options:(MTLResourceOptions)options deallocator:(void (^)(void *pointer, NSUInteger length))deallocator;
- (id<MTLLibrary>)newLibraryWithSource:(NSString *)source options:(MTLCompileOptions *)options error:(NSError **)error;
- (id<MTLComputePipelineState>)newComputePipelineStateWithFunction:(id<MTLFunction>)computeFunction error:(NSError **)error;
- (id<MTLResidencySet>)newResidencySetWithDescriptor:(MTLResidencySetDescriptor *)desc error:(NSError **)error;
@end

@interface MTLArchitecture
@property (nonatomic, copy, readonly) NSString *name;
@end

@interface MTLCompileOptions
@property (readwrite, nonatomic) MTLLanguageVersion languageVersion;
@property (readwrite, nonatomic) MTLMathMode mathMode;
@end

@protocol MTLLibrary
- (id<MTLFunction>)newFunctionWithName:(NSString *)functionName;
@end

@protocol MTLComputePipelineState
@property (readonly) NSUInteger maxTotalThreadsPerThreadgroup;
@property (readonly) NSUInteger threadExecutionWidth;
@property (readonly) NSUInteger staticThreadgroupMemoryLength;
@end

@protocol MTLResource
@property (copy, atomic) NSString *label;
@end

@protocol MTLBuffer
- (void *)contents;
@end

@protocol MTLCommandQueue
- (id<MTLCommandBuffer>)commandBufferWithUnretainedReferences;
- (void)addResidencySet:(id<MTLResidencySet>)residencySet;
- (void)removeResidencySet:(id<MTLResidencySet>)residencySet;
@end

@protocol MTLCommandBuffer
@property (readonly) CFTimeInterval GPUStartTime;
@property (readonly) CFTimeInterval GPUEndTime;
@property (readonly) MTLCommandBufferStatus status;
@property (readonly) NSError *error;
- (void)commit;
- (void)waitUntilCompleted;
- (id<MTLComputeCommandEncoder>)computeCommandEncoderWithDispatchType:(MTLDispatchType)dispatchType;
@end

@protocol MTLComputeCommandEncoder
- (void)setComputePipelineState:(id<MTLComputePipelineState>)state;
- (void)setBytes:(const void *)bytes length:(NSUInteger)length atIndex:(NSUInteger)index;
- (void)setBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset atIndex:(NSUInteger)index;
- (void)setBufferOffset:(NSUInteger)offset atIndex:(NSUInteger)index;
- (void)setBuffers:(const id<MTLBuffer> [])buffers offsets:(const NSUInteger [])offsets withRange:(NSRange)range;
- (void)setThreadgroupMemoryLength:(NSUInteger)length atIndex:(NSUInteger)index;
- (void)dispatchThreadgroups:(MTLSize)threadgroupsPerGrid threadsPerThreadgroup:(MTLSize)threadsPerThreadgroup;
- (void)dispatchThreadgroupsWithIndirectBuffer:(id<MTLBuffer>)indirectBuffer indirectBufferOffset:(NSUInteger)indirectBufferOffset threadsPerThreadgroup:(MTLSize)threadsPerThreadgroup;
- (void)memoryBarrierWithScope:(MTLBarrierScope)scope;
- (void)endEncoding;
@end

@interface MTLResidencySetDescriptor
@property (nonatomic) NSUInteger initialCapacity;
@end

@protocol MTLResidencySet
@property (readonly) uint64_t allocatedSize;
- (void)requestResidency;
- (void)endResidency;
- (void)addAllocation:(id<MTLAllocation>)allocation;
- (void)removeAllocation:(id<MTLAllocation>)allocation;
- (void)commit;
@end
