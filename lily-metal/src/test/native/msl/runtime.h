// What the translated kernels register with the runtime.
#pragma once
#include "lily_kernel_abi.h"

namespace lily {
struct Registration {
  lily_kernel_info info;
  void (*run)(void *const *buffers);  // one thread of the kernel
  Registration *next;
};
void add(Registration *registration);
}  // namespace lily
