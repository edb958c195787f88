// refused: without an address space
#include <metal_stdlib>
using namespace metal;
static float head(const float* p) { return p[0]; }
kernel void k(device float* y [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  float t[2] = {1.0f, 2.0f};
  y[i] = head(t);
}
