// The few functions of NVIDIA's driver that the executor calls, found at run time, so that it builds where no CUDA is
// installed. Names and types are those of cuda.h.
#pragma once
#include <dlfcn.h>
#include <stddef.h>

typedef int CUresult; /* 0: success */
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;

#define LILY_CUDA_FUNCTIONS(F)                                                                                    \
  F(cuInit, "cuInit", (unsigned flags))                                                                           \
  F(cuDriverGetVersion, "cuDriverGetVersion", (int *version))                                                     \
  F(cuDeviceGet, "cuDeviceGet", (CUdevice *device, int ordinal))                                                  \
  F(cuDeviceGetName, "cuDeviceGetName", (char *name, int length, CUdevice device))                                \
  F(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (CUcontext *context, CUdevice device))                  \
  F(cuCtxSetCurrent, "cuCtxSetCurrent", (CUcontext context))                                                      \
  F(cuCtxSynchronize, "cuCtxSynchronize", (void))                                                                 \
  F(cuModuleLoad, "cuModuleLoad", (CUmodule *module, const char *path))                                           \
  F(cuModuleGetFunction, "cuModuleGetFunction", (CUfunction *function, CUmodule module, const char *name))        \
  F(cuMemAlloc, "cuMemAlloc_v2", (CUdeviceptr *pointer, size_t bytes))                                            \
  F(cuMemFree, "cuMemFree_v2", (CUdeviceptr pointer))                                                             \
  F(cuMemcpyHtoD, "cuMemcpyHtoD_v2", (CUdeviceptr to, const void *from, size_t bytes))                            \
  F(cuMemcpyDtoH, "cuMemcpyDtoH_v2", (void *to, CUdeviceptr from, size_t bytes))                                  \
  F(cuMemsetD8, "cuMemsetD8_v2", (CUdeviceptr to, unsigned char value, size_t bytes))                             \
  F(cuLaunchKernel, "cuLaunchKernel",                                                                             \
    (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,  \
     unsigned block_z, unsigned shared_bytes, CUstream stream, void **parameters, void **extra))                  \
  F(cuGetErrorName, "cuGetErrorName", (CUresult error, const char **name))                                        \
  F(cuGetErrorString, "cuGetErrorString", (CUresult error, const char **text))

#define LILY_CUDA_POINTER(NAME, SYMBOL, PARAMETERS) static CUresult(*NAME) PARAMETERS;
LILY_CUDA_FUNCTIONS(LILY_CUDA_POINTER)
#undef LILY_CUDA_POINTER

// Null, or the library or function that is missing.
static const char *find_cuda_driver(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == NULL) return "libcuda.so.1";
#define LILY_CUDA_FIND(NAME, SYMBOL, PARAMETERS)           \
  *(void **)&NAME = dlsym(library, SYMBOL);                \
  if (NAME == NULL) return SYMBOL;
  LILY_CUDA_FUNCTIONS(LILY_CUDA_FIND)
#undef LILY_CUDA_FIND
  return NULL;
}
