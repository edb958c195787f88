// refused: incompatible|cannot|assigning
#include <metal_stdlib>
using namespace metal;
kernel void k(device float4* y [[buffer(0)]], device const uint2* u [[buffer(1)]], uint i [[thread_position_in_grid]]) { y[i] = u[i]; }
