// refused: read-only|const-qualified
#include <metal_stdlib>
using namespace metal;
kernel void k(constant uint& n [[buffer(0)]], uint i [[thread_position_in_grid]]) { n = i; }
