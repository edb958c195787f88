struct NormParams {
  uint columns;
  uint has_branch;
  float eps;
};

// x_out = x + branch; n = x_out / sqrt(mean(x_out^2) + eps) * gain.
// x, x_out [rows, columns] fp32, may be one buffer; branch [rows, columns] bf16 (bound to anything if absent);
// gain [columns] fp32; n [rows, columns] bf16. One threadgroup of 256 threads per row.
[[max_total_threads_per_threadgroup(256)]] kernel void add_norm(device const float* x [[buffer(0)]],
                                                                device const bfloat* branch [[buffer(1)]],
                                                                device const float* gain [[buffer(2)]],
                                                                device float* x_out [[buffer(3)]],
                                                                device bfloat* n [[buffer(4)]],
                                                                constant NormParams& p [[buffer(5)]],
                                                                uint row [[threadgroup_position_in_grid]],
                                                                uint tid [[thread_index_in_threadgroup]],
                                                                uint lane [[thread_index_in_simdgroup]],
                                                                uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup float partial[SIMD];
  const ulong at = ulong(row) * p.columns;
  const bool has_branch = p.has_branch != 0;
  const float scale =
      residual_scale(x + at, branch + (has_branch ? at : 0), has_branch, p.columns, p.eps, partial, tid, lane, sg);
  for (uint c = tid; c < p.columns; c += NORM_THREADS) {
    const float v = has_branch ? x[at + c] + float(branch[at + c]) : x[at + c];
    x_out[at + c] = v;
    n[at + c] = bfloat(v * scale * gain[c]);
  }
}
