// refused: used twice
#include <metal_stdlib>
using namespace metal;
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(0)]], uint i [[thread_position_in_grid]]) { y[i] = x[i]; }
