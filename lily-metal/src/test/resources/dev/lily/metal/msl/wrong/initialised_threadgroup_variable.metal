// refused: has an initialiser
#include <metal_stdlib>
using namespace metal;
kernel void k(device float* y [[buffer(0)]], uint i [[thread_position_in_grid]]) { threadgroup float t = 0.0f; y[i] = t; }
