// refused: it has no attribute
#include <metal_stdlib>
using namespace metal;
kernel void k(device float* y [[buffer(0)]], uint i) { y[i] = 0.0f; }
