// refused: address_space
#include <metal_stdlib>
using namespace metal;
kernel void k(device float* y [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
  threadgroup float t[32];
  t[i] = 1.0f;
  device float* p = t;
  y[i] = p[0];
}
