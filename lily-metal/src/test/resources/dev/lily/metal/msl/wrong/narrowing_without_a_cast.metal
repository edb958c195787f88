// refused: implicit conversion
#include <metal_stdlib>
using namespace metal;
kernel void k(device uint* y [[buffer(0)]], constant ulong& n [[buffer(1)]], uint i [[thread_position_in_grid]]) { y[i] = n; }
