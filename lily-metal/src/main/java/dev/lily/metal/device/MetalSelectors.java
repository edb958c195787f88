package dev.lily.metal.device;

import dev.lily.metal.objc.Selector;
import java.util.List;

/** Every message that this package sends to Metal. */
public final class MetalSelectors {
  private static final String DEVICE = "MTLDevice";
  private static final String QUEUE = "MTLCommandQueue";
  private static final String COMMAND_BUFFER = "MTLCommandBuffer";
  private static final String ENCODER = "MTLComputeCommandEncoder";
  private static final String PIPELINE = "MTLComputePipelineState";
  private static final String RESIDENCY_SET = "MTLResidencySet";

  static final Selector DEVICE_NAME = Selector.of(DEVICE, "name", "@");
  static final Selector ARCHITECTURE = Selector.of(DEVICE, "architecture", "@");
  static final Selector SUPPORTS_FAMILY = Selector.of(DEVICE, "supportsFamily:", "Bq");
  static final Selector HAS_UNIFIED_MEMORY = Selector.of(DEVICE, "hasUnifiedMemory", "B");
  static final Selector RECOMMENDED_MAX_WORKING_SET_SIZE =
      Selector.of(DEVICE, "recommendedMaxWorkingSetSize", "Q");
  static final Selector CURRENT_ALLOCATED_SIZE = Selector.of(DEVICE, "currentAllocatedSize", "Q");
  static final Selector MAX_BUFFER_LENGTH = Selector.of(DEVICE, "maxBufferLength", "Q");
  static final Selector MAX_THREADGROUP_MEMORY_LENGTH =
      Selector.of(DEVICE, "maxThreadgroupMemoryLength", "Q");
  static final Selector NEW_COMMAND_QUEUE =
      Selector.of(DEVICE, "newCommandQueueWithMaxCommandBufferCount:", "@Q");
  static final Selector NEW_BUFFER = Selector.of(DEVICE, "newBufferWithLength:options:", "@QQ");
  static final Selector NEW_BUFFER_NO_COPY =
      Selector.of(DEVICE, "newBufferWithBytesNoCopy:length:options:deallocator:", "@^vQQ@?");
  static final Selector NEW_LIBRARY =
      Selector.of(DEVICE, "newLibraryWithSource:options:error:", "@@@^@");
  static final Selector NEW_PIPELINE =
      Selector.of(DEVICE, "newComputePipelineStateWithFunction:error:", "@@^@");
  static final Selector NEW_RESIDENCY_SET =
      Selector.of(DEVICE, "newResidencySetWithDescriptor:error:", "@@^@");

  static final Selector ARCHITECTURE_NAME = Selector.of("MTLArchitecture", "name", "@");

  static final Selector SET_LANGUAGE_VERSION =
      Selector.of("MTLCompileOptions", "setLanguageVersion:", "vQ");
  static final Selector SET_MATH_MODE = Selector.of("MTLCompileOptions", "setMathMode:", "vq");

  static final Selector NEW_FUNCTION = Selector.of("MTLLibrary", "newFunctionWithName:", "@@");

  static final Selector MAX_TOTAL_THREADS_PER_THREADGROUP =
      Selector.of(PIPELINE, "maxTotalThreadsPerThreadgroup", "Q");
  static final Selector THREAD_EXECUTION_WIDTH = Selector.of(PIPELINE, "threadExecutionWidth", "Q");
  static final Selector STATIC_THREADGROUP_MEMORY_LENGTH =
      Selector.of(PIPELINE, "staticThreadgroupMemoryLength", "Q");

  static final Selector CONTENTS = Selector.of("MTLBuffer", "contents", "^v");
  static final Selector SET_LABEL = Selector.of("MTLResource", "setLabel:", "v@");

  static final Selector COMMAND_BUFFER_UNRETAINED =
      Selector.of(QUEUE, "commandBufferWithUnretainedReferences", "@");
  static final Selector ADD_RESIDENCY_SET = Selector.of(QUEUE, "addResidencySet:", "v@");
  static final Selector REMOVE_RESIDENCY_SET = Selector.of(QUEUE, "removeResidencySet:", "v@");

  static final Selector COMPUTE_COMMAND_ENCODER =
      Selector.of(COMMAND_BUFFER, "computeCommandEncoderWithDispatchType:", "@Q");
  static final Selector COMMIT = Selector.of(COMMAND_BUFFER, "commit", "v");
  static final Selector WAIT_UNTIL_COMPLETED =
      Selector.of(COMMAND_BUFFER, "waitUntilCompleted", "v");
  static final Selector STATUS = Selector.of(COMMAND_BUFFER, "status", "Q");
  static final Selector ERROR = Selector.of(COMMAND_BUFFER, "error", "@");
  static final Selector GPU_START_TIME = Selector.of(COMMAND_BUFFER, "GPUStartTime", "d");
  static final Selector GPU_END_TIME = Selector.of(COMMAND_BUFFER, "GPUEndTime", "d");

  static final Selector SET_PIPELINE = Selector.of(ENCODER, "setComputePipelineState:", "v@");
  static final Selector SET_BUFFER = Selector.of(ENCODER, "setBuffer:offset:atIndex:", "v@QQ");
  static final Selector SET_BUFFER_OFFSET = Selector.of(ENCODER, "setBufferOffset:atIndex:", "vQQ");
  static final Selector SET_BUFFERS =
      Selector.of(ENCODER, "setBuffers:offsets:withRange:", "v^@^Q{NSRange=QQ}");
  static final Selector SET_BYTES = Selector.of(ENCODER, "setBytes:length:atIndex:", "v^vQQ");
  static final Selector SET_THREADGROUP_MEMORY =
      Selector.of(ENCODER, "setThreadgroupMemoryLength:atIndex:", "vQQ");
  static final Selector DISPATCH =
      Selector.of(
          ENCODER, "dispatchThreadgroups:threadsPerThreadgroup:", "v{MTLSize=QQQ}{MTLSize=QQQ}");
  static final Selector DISPATCH_INDIRECT =
      Selector.of(
          ENCODER,
          "dispatchThreadgroupsWithIndirectBuffer:indirectBufferOffset:threadsPerThreadgroup:",
          "v@Q{MTLSize=QQQ}");
  static final Selector MEMORY_BARRIER = Selector.of(ENCODER, "memoryBarrierWithScope:", "vQ");
  static final Selector END_ENCODING = Selector.of(ENCODER, "endEncoding", "v");

  static final Selector SET_INITIAL_CAPACITY =
      Selector.of("MTLResidencySetDescriptor", "setInitialCapacity:", "vQ");
  static final Selector ADD_ALLOCATION = Selector.of(RESIDENCY_SET, "addAllocation:", "v@");
  static final Selector REMOVE_ALLOCATION = Selector.of(RESIDENCY_SET, "removeAllocation:", "v@");
  static final Selector COMMIT_RESIDENCY = Selector.of(RESIDENCY_SET, "commit", "v");
  static final Selector REQUEST_RESIDENCY = Selector.of(RESIDENCY_SET, "requestResidency", "v");
  static final Selector END_RESIDENCY = Selector.of(RESIDENCY_SET, "endResidency", "v");
  static final Selector ALLOCATED_SIZE = Selector.of(RESIDENCY_SET, "allocatedSize", "Q");

  private static final List<Selector> ALL =
      List.of(
          DEVICE_NAME,
          ARCHITECTURE,
          SUPPORTS_FAMILY,
          HAS_UNIFIED_MEMORY,
          RECOMMENDED_MAX_WORKING_SET_SIZE,
          CURRENT_ALLOCATED_SIZE,
          MAX_BUFFER_LENGTH,
          MAX_THREADGROUP_MEMORY_LENGTH,
          NEW_COMMAND_QUEUE,
          NEW_BUFFER,
          NEW_BUFFER_NO_COPY,
          NEW_LIBRARY,
          NEW_PIPELINE,
          NEW_RESIDENCY_SET,
          ARCHITECTURE_NAME,
          SET_LANGUAGE_VERSION,
          SET_MATH_MODE,
          NEW_FUNCTION,
          MAX_TOTAL_THREADS_PER_THREADGROUP,
          THREAD_EXECUTION_WIDTH,
          STATIC_THREADGROUP_MEMORY_LENGTH,
          CONTENTS,
          SET_LABEL,
          COMMAND_BUFFER_UNRETAINED,
          ADD_RESIDENCY_SET,
          REMOVE_RESIDENCY_SET,
          COMPUTE_COMMAND_ENCODER,
          COMMIT,
          WAIT_UNTIL_COMPLETED,
          STATUS,
          ERROR,
          GPU_START_TIME,
          GPU_END_TIME,
          SET_PIPELINE,
          SET_BUFFER,
          SET_BUFFER_OFFSET,
          SET_BUFFERS,
          SET_BYTES,
          SET_THREADGROUP_MEMORY,
          DISPATCH,
          DISPATCH_INDIRECT,
          MEMORY_BARRIER,
          END_ENCODING,
          SET_INITIAL_CAPACITY,
          ADD_ALLOCATION,
          REMOVE_ALLOCATION,
          COMMIT_RESIDENCY,
          REQUEST_RESIDENCY,
          END_RESIDENCY,
          ALLOCATED_SIZE);

  private MetalSelectors() {}

  /** The whole table, for the tests and the check on a real Mac. */
  public static List<Selector> all() {
    return ALL;
  }
}
