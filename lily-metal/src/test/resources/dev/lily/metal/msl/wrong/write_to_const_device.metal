// refused: read-only|const-qualified
#include <metal_stdlib>
using namespace metal;
kernel void k(device const float* x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] = 0.0f; }
