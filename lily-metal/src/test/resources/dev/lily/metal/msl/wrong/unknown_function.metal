// refused: undeclared|not declared|unknown
#include <metal_stdlib>
using namespace metal;
kernel void k(device float* y [[buffer(0)]], uint i [[thread_position_in_grid]]) { y[i] = expf(1.0f); }
