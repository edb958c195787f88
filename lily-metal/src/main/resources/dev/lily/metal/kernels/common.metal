// Put before every other source. MSL 3.1, compiled in safe math mode: sums are taken in the order written, and a sum
// that must be the same bits in two kernels is written with explicit fma in both.
//
// Names: rows are rows of the plan; a matrix is [outputs, columns]. bf16 activations, fp32 residual stream, gains,
// logits and state. Buffer indices are dense from 0; every kernel's first lines give its arguments and geometry.
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

#pragma METAL fp contract(off)

constant constexpr uint SIMD = 32;

// Formats of a matrix. Codes are unsigned, lowest bits first; value = scale * code + bias per group of columns.
constant constexpr uint AFFINE_4 = 0;
constant constexpr uint AFFINE_8 = 1;
constant constexpr uint DENSE_BF16 = 2;
constant constexpr uint DENSE_F32 = 3;

static inline float sigmoid(float x) { return 1.0f / (1.0f + precise::exp(-x)); }
static inline float silu(float x) { return x / (1.0f + precise::exp(-x)); }
// log(1 + e^x); 1 + e^x loses nothing that fp32 holds once x is above -15 or so, and below the first term is exact.
static inline float softplus(float x) {
  if (x > 20.0f) return x;
  const float e = precise::exp(x);
  return e < 1e-4f ? e - 0.5f * e * e : precise::log(1.0f + e);
}

// Sum over a threadgroup of up to 1024 threads, the same in every thread. partial holds 32 floats; the caller has a
// barrier between two uses of it.
static inline float threadgroup_sum(float v, threadgroup float* partial, uint lane, uint sg, uint sgs) {
  const float s = simd_sum(v);
  if (lane == 0) partial[sg] = s;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return simd_sum(lane < sgs ? partial[lane] : 0.0f);
}

// x / rms of one row by a threadgroup of 256 threads, whatever else the kernel does with it: thread t owns columns
// t, t + 256, ... x += branch is taken first; the sum is what is normalised. Returns 1 / rms.
constant constexpr uint NORM_THREADS = 256;
static inline float residual_scale(device const float* x, device const bfloat* branch, bool has_branch, uint columns,
                                   float eps, threadgroup float* partial, uint tid, uint lane, uint sg) {
  float squares = 0.0f;
  for (uint c = tid; c < columns; c += NORM_THREADS) {
    const float v = has_branch ? x[c] + float(branch[c]) : x[c];
    squares = fma(v, v, squares);
  }
  const float sum = threadgroup_sum(squares, partial, lane, sg, NORM_THREADS / SIMD);
  return 1.0f / sqrt(sum / float(columns) + eps);
}
