// refused: no matching function
#include <metal_stdlib>
using namespace metal;
static float head(threadgroup const float* p) { return p[0]; }
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], uint i [[thread_position_in_grid]]) { y[i] = head(x); }
