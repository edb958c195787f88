// Kernels that compile but must be caught when they run.
#include <metal_stdlib>
using namespace metal;

kernel void barrier_by_half(device float* y [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
  if (i < 16) threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = 1.0f;
}
kernel void two_barriers(device float* y [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
  if (i < 32) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
  } else {
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  y[i] = 1.0f;
}
kernel void simd_sum_by_half(device float* y [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
  if (i < 16) y[i] = simd_sum(1.0f);
}
kernel void reads_unwritten(device float* y [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
  threadgroup float t[64];
  if (i < 32) t[i] = 1.0f;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = t[i];
}
kernel void lacks_a_barrier(device float* y [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
  threadgroup float t[64];
  t[i] = float(i);
  y[i] = i > 0 ? t[i - 1] : 0.0f;
}
kernel void lacks_the_second_barrier(device float* y [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
  threadgroup float t[64];
  for (uint k = 0; k < 2; k++) {
    t[i] = float(i + k);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[i] = t[63 - i];
  }
}
kernel void counts_on_lockstep(device float* y [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
  threadgroup float t[64];
  t[i] = float(i);
  simdgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = t[63 - i];
}
kernel void within_a_simdgroup(device float* y [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {  // right
  threadgroup float t[64];
  t[i] = float(i);
  simdgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = t[i ^ 31];
}
kernel void reads_past_the_end(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
                               uint i [[thread_position_in_grid]]) {
  y[i] = x[i + 1];
}
kernel void writes_past_the_end(device float* y [[buffer(0)]], uint i [[thread_position_in_grid]]) { y[i + 1] = 1.0f; }
kernel void overruns_threadgroup_memory(device float* y [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
  threadgroup float t[64];
  t[i + 1] = 1.0f;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = t[i + 1];
}
kernel void loads_a_misaligned_vector(device const float* x [[buffer(0)]], device float4* y [[buffer(1)]],
                                      uint i [[thread_position_in_grid]]) {
  y[i] = *(device const float4*)(x + 1);
}
kernel void two_groups_one_word(device float* y [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  if (i % 32 == 0) y[0] = float(i);
}
