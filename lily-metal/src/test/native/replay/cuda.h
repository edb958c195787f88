/* What the replay uses of CUDA's driver interface, declared here and found at run time: no CUDA is needed to build. */
#ifndef LILY_REPLAY_CUDA_H
#define LILY_REPLAY_CUDA_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#include <cstdio>
#include <cstdlib>

namespace cuda {

typedef int Device;
typedef uint64_t Pointer;
typedef struct Context_ *Context;
typedef struct Module_ *Module;
typedef struct Function_ *Function;
typedef struct Stream_ *Stream;
typedef struct Event_ *Event;
typedef struct Graph_ *Graph;
typedef struct GraphExec_ *GraphExec;
typedef struct GraphNode_ *GraphNode;

/* CUDA_KERNEL_NODE_PARAMS_v1 */
struct KernelNode {
  Function function;
  unsigned groups[3], threads[3], block_bytes;
  void **parameters, **extra;
};

#define LILY_CUDA_FUNCTIONS(F)                                                                              \
  F(init, "cuInit", (unsigned))                                                                             \
  F(device_get, "cuDeviceGet", (Device *, int))                                                             \
  F(device_name, "cuDeviceGetName", (char *, int, Device))                                                  \
  F(device_attribute, "cuDeviceGetAttribute", (int *, int, Device))                                         \
  F(driver_version, "cuDriverGetVersion", (int *))                                                          \
  F(context_retain, "cuDevicePrimaryCtxRetain", (Context *, Device))                                        \
  F(context_set, "cuCtxSetCurrent", (Context))                                                              \
  F(module_load, "cuModuleLoadData", (Module *, const void *))                                              \
  F(module_function, "cuModuleGetFunction", (Function *, Module, const char *))                             \
  F(allocate, "cuMemAlloc_v2", (Pointer *, size_t))                                                         \
  F(release, "cuMemFree_v2", (Pointer))                                                                     \
  F(upload, "cuMemcpyHtoD_v2", (Pointer, const void *, size_t))                                             \
  F(download, "cuMemcpyDtoH_v2", (void *, Pointer, size_t))                                                 \
  F(copy, "cuMemcpyDtoDAsync_v2", (Pointer, Pointer, size_t, Stream))                                       \
  F(clear, "cuMemsetD8_v2", (Pointer, unsigned char, size_t))                                               \
  F(synchronize, "cuCtxSynchronize", ())                                                                    \
  F(stream_create, "cuStreamCreate", (Stream *, unsigned))                                                  \
  F(event_create, "cuEventCreate", (Event *, unsigned))                                                     \
  F(event_record, "cuEventRecord", (Event, Stream))                                                         \
  F(event_synchronize, "cuEventSynchronize", (Event))                                                       \
  F(event_elapsed, "cuEventElapsedTime", (float *, Event, Event))                                           \
  F(launch, "cuLaunchKernel",                                                                               \
    (Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream, void **, void **)) \
  F(graph_create, "cuGraphCreate", (Graph *, unsigned))                                                     \
  F(graph_kernel, "cuGraphAddKernelNode",                                                                   \
    (GraphNode *, Graph, const GraphNode *, size_t, const KernelNode *))                                    \
  F(graph_instantiate, "cuGraphInstantiateWithFlags", (GraphExec *, Graph, unsigned long long))             \
  F(graph_launch, "cuGraphLaunch", (GraphExec, Stream))                                                     \
  F(graph_exec_destroy, "cuGraphExecDestroy", (GraphExec))                                                  \
  F(graph_destroy, "cuGraphDestroy", (Graph))                                                               \
  F(error_name, "cuGetErrorName", (int, const char **))

#define F(NAME, SYMBOL, ARGUMENTS) inline int(*NAME) ARGUMENTS;
LILY_CUDA_FUNCTIONS(F)
#undef F

inline void load() {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) {
    fprintf(stderr, "No NVIDIA driver: %s\n", dlerror());
    exit(2);
  }
#define F(NAME, SYMBOL, ARGUMENTS)                                \
  NAME = (decltype(NAME))dlsym(library, SYMBOL);                  \
  if (!NAME) {                                                    \
    fprintf(stderr, "The NVIDIA driver has no %s\n", SYMBOL);     \
    exit(2);                                                      \
  }
  LILY_CUDA_FUNCTIONS(F)
#undef F
}

inline void check(int result, const char *what) {
  if (!result) return;
  const char *name = "?";
  if (error_name) error_name(result, &name);
  fprintf(stderr, "%s: %s (%d)\n", what, name, result);
  exit(1);
}

#define CUDA(NAME, ...) cuda::check(cuda::NAME(__VA_ARGS__), #NAME)

}  // namespace cuda
#endif
