// refused: cannot|no viable|assigning|implicit
#include <metal_stdlib>
using namespace metal;
kernel void k(device bfloat4* y [[buffer(0)]], device const float4* x [[buffer(1)]], uint i [[thread_position_in_grid]]) { y[i] = x[i]; }
