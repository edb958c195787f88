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
  device const bfloat* added = branch + (has_branch ? at : 0);
  const uint pieces = (p.columns + PIECE - 1) / PIECE;
  float v[PIECE];
  float squares = 0.0f;
  for (uint piece = tid; piece < pieces; piece += NORM_THREADS) {
    load_residual(x + at, added, has_branch, p.columns, piece, v);
    add_squares(v, squares);
  }
  const float scale = norm_scale(squares, p.columns, p.eps, partial, lane, sg);
  for (uint piece = tid; piece < pieces; piece += NORM_THREADS) {
    if (pieces > NORM_THREADS) load_residual(x + at, added, has_branch, p.columns, piece, v);
    write_normed(v, scale, gain, p.columns, piece, true, x_out + at, n + at);
  }
}
