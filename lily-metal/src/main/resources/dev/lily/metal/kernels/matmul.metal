// ---------------------------------------------------------------------------------------------------------------
// Decode: matrix times a few rows.

struct MatvecParams {
  uint columns;
  uint group_size;
  uint outputs_0;  // of up to four matrices over one input; 0 for one that is absent
  uint outputs_1;
  uint outputs_2;
  uint outputs_3;
  uint rows;
  uint has_branch;
  float eps;
};


constant constexpr uint FUSED_COLUMNS = 4096;       // most columns of a kernel that normalises its input itself

// Which matrix, and which of its outputs, a simdgroup works on.
static inline uint matrix_of(constant MatvecParams& p, uint group, uint per_group, thread uint& first, thread uint& outputs) {
  uint which = 0;
  outputs = p.outputs_0;
  uint groups = (outputs + per_group - 1) / per_group;
  if (group >= groups) {
    group -= groups;
    which = 1;
    outputs = p.outputs_1;
    groups = (outputs + per_group - 1) / per_group;
  }
  if (which == 1 && group >= groups) {
    group -= groups;
    which = 2;
    outputs = p.outputs_2;
    groups = (outputs + per_group - 1) / per_group;
  }
  if (which == 2 && group >= groups) {
    group -= groups;
    which = 3;
    outputs = p.outputs_3;
  }
  first = group * per_group;
  return which;
}

#define MATRIX(M, A, B, C)                                                                       \
  device const uint* codes_##M [[buffer(A)]], device const bfloat* scales_##M [[buffer(B)]], \
      device const bfloat* biases_##M [[buffer(C)]]
#define CHOSEN(FIELD) (which == 0 ? FIELD##_0 : which == 1 ? FIELD##_1 : which == 2 ? FIELD##_2 : FIELD##_3)

#define MATVEC_STORE(T, OUTPUTS, ROWS, ROW0)                                           \
  for (uint o = 0; o < OUTPUTS; o++)                                                   \
    for (uint r = 0; r < ROWS; r++) {                                                  \
      const float s = simd_sum(acc[o * ROWS + r]);                                     \
      if (lane == 0 && first + o < outputs && ROW0 + r < p.rows)                       \
        out[ulong(ROW0 + r) * outputs + first + o] = T(s);                             \
    }

// out_m[r] = matrix_m * x[r] for up to four matrices of one format.
// codes_m, scales_m, biases_m at 3m (dense: codes alone; what is absent is bound to anything); x [rows, columns] bf16;
// out_m [rows, outputs_m] T. Grid (sum over m of ceil(outputs_m / (8 OUTPUTS)), ceil(rows / ROWS)) of 256 threads.
// 35B: OUTPUTS 4 for 2048 outputs and more, 1 for the router. Staged: BLOCK columns of ROWS rows.
#define MATVEC(NAME, FORMAT, T, OUTPUTS, ROWS, BLOCK)                                                            \
  [[max_total_threads_per_threadgroup(256)]] kernel void NAME(                                                   \
      MATRIX(0, 0, 1, 2), MATRIX(1, 3, 4, 5), MATRIX(2, 6, 7, 8), MATRIX(3, 9, 10, 11), device const bfloat* x [[buffer(12)]],             \
      device T* out_0 [[buffer(13)]], device T* out_1 [[buffer(14)]], device T* out_2 [[buffer(15)]],            \
      device T* out_3 [[buffer(16)]], constant MatvecParams& p [[buffer(17)]],                                   \
      uint2 group [[threadgroup_position_in_grid]], uint tid [[thread_index_in_threadgroup]],                    \
      uint lane [[thread_index_in_simdgroup]], uint sg [[simdgroup_index_in_threadgroup]]) {                     \
    threadgroup uint4 staged_x[ROWS * BLOCK / PIECE];                                                           \
    threadgroup float sums[ROWS * BLOCK / CHUNK];                                                               \
    threadgroup bfloat* xs = (threadgroup bfloat*)staged_x;                                                     \
    uint first, outputs;                                                                                        \
    const uint which = matrix_of(p, group.x, MATVEC_SIMDGROUPS * OUTPUTS, first, outputs);                      \
    first += sg * OUTPUTS;                                                                                      \
    const uint row0 = group.y * ROWS;                                                                           \
    device const uint* codes = CHOSEN(codes);                                                                   \
    device const bfloat* scales = CHOSEN(scales);                                                               \
    device const bfloat* biases = CHOSEN(biases);                                                               \
    device T* out = CHOSEN(out);                                                                                \
    const RowShape shape = row_shape(FORMAT, p.columns, p.group_size);                                          \
    uint rows[OUTPUTS];                                                                                         \
    for (uint o = 0; o < OUTPUTS; o++) rows[o] = min(first + o, outputs - 1);                                   \
    Chunk next[OUTPUTS];                                                                                        \
    float acc[OUTPUTS * ROWS];                                                                                  \
    for (uint i = 0; i < OUTPUTS * ROWS; i++) acc[i] = 0.0f;                                                    \
    for (uint k0 = 0; k0 < p.columns; k0 += BLOCK) {                                                            \
      const uint count = min(uint(BLOCK), p.columns - k0), pieces = (count + CHUNK - 1) / CHUNK * 2;            \
      if ((FORMAT == AFFINE_4 || FORMAT == AFFINE_8) && first < outputs && lane * CHUNK < count)                \
        load_chunks<FORMAT, OUTPUTS>(codes, scales, biases, shape, rows, k0 / CHUNK + lane, next);              \
      threadgroup_barrier(mem_flags::mem_threadgroup);                                                          \
      for (uint i = tid; i < ROWS * BLOCK / PIECE; i += 256) {                                                  \
        const uint r = i / (BLOCK / PIECE), piece = i % (BLOCK / PIECE);                                        \
        float v[PIECE];                                                                                         \
        load_piece(x + ulong(row0 + r) * p.columns + k0, row0 + r < p.rows ? count : 0u, piece,                 \
                   p.columns % PIECE == 0, v);                                                                  \
        stage_piece(FORMAT, v, piece, piece < pieces, BLOCK / 2, xs + r * BLOCK, sums + r * (BLOCK / CHUNK));   \
      }                                                                                                         \
      threadgroup_barrier(mem_flags::mem_threadgroup);                                                          \
      if (first < outputs)                                                                                      \
        matvec_block<FORMAT, OUTPUTS, ROWS>(codes, scales, biases, shape, rows, k0, count, p.columns, xs, sums, \
                                            BLOCK, lane, next, acc);                                            \
    }                                                                                                           \
    MATVEC_STORE(T, OUTPUTS, ROWS, row0)                                                                         \
  }

#define MATVECS(FORMAT_NAME, FORMAT, OUT_NAME, T)                          \
  MATVEC(matvec_##FORMAT_NAME##_##OUT_NAME##_o1_r1, FORMAT, T, 1, 1, 4096) \
  MATVEC(matvec_##FORMAT_NAME##_##OUT_NAME##_o2_r1, FORMAT, T, 2, 1, 4096) \
  MATVEC(matvec_##FORMAT_NAME##_##OUT_NAME##_o4_r1, FORMAT, T, 4, 1, 4096) \
  MATVEC(matvec_##FORMAT_NAME##_##OUT_NAME##_o4_r2, FORMAT, T, 4, 2, 2048) \
  MATVEC(matvec_##FORMAT_NAME##_##OUT_NAME##_o2_r4, FORMAT, T, 2, 4, 1024) \
  MATVEC(matvec_##FORMAT_NAME##_##OUT_NAME##_o2_r8, FORMAT, T, 2, 8, 512)
MATVECS(q4, AFFINE_4, bf16, bfloat)
MATVECS(q4, AFFINE_4, f32, float)
MATVECS(q8, AFFINE_8, bf16, bfloat)
MATVECS(q8, AFFINE_8, f32, float)
MATVEC(matvec_bf16_bf16_o1_r1, DENSE_BF16, bfloat, 1, 1, 4096)
MATVEC(matvec_bf16_bf16_o2_r8, DENSE_BF16, bfloat, 2, 8, 512)
MATVEC(matvec_bf16_f32_o1_r1, DENSE_BF16, float, 1, 1, 4096)
MATVEC(matvec_bf16_f32_o2_r8, DENSE_BF16, float, 2, 8, 512)
MATVEC(matvec_f32_bf16_o1_r1, DENSE_F32, bfloat, 1, 1, 4096)
MATVEC(matvec_f32_bf16_o2_r8, DENSE_F32, bfloat, 2, 8, 512)
MATVEC(matvec_f32_f32_o1_r1, DENSE_F32, float, 1, 1, 4096)
MATVEC(matvec_f32_f32_o2_r8, DENSE_F32, float, 2, 8, 512)

// The same for one row, with the residual add and the RMSNorm of its input done by every threadgroup itself, in
// add_norm's order: x + branch -> x_out and its norm -> n, both written by the first threadgroup, then the products.
// x, x_out [columns] fp32, different buffers; branch [columns] bf16; gain [columns] fp32; n [columns] bf16;
// columns at most 4096. A threadgroup makes BLOCKS times the outputs of one above, so that many outputs share a norm.
// Grid (ceil(threadgroups as above / BLOCKS)) of 256 threads.
#define NORM_MATVEC(NAME, FORMAT, T, OUTPUTS, BLOCKS)                                                           \
  [[max_total_threads_per_threadgroup(256)]] kernel void NAME(                                                  \
      MATRIX(0, 0, 1, 2), MATRIX(1, 3, 4, 5), MATRIX(2, 6, 7, 8), MATRIX(3, 9, 10, 11),                         \
      device const float* x [[buffer(12)]], device T* out_0 [[buffer(13)]], device T* out_1 [[buffer(14)]],     \
      device T* out_2 [[buffer(15)]], device T* out_3 [[buffer(16)]], constant MatvecParams& p [[buffer(17)]],  \
      device const bfloat* branch [[buffer(18)]], device const float* gain [[buffer(19)]],                      \
      device float* x_out [[buffer(20)]], device bfloat* n [[buffer(21)]],                                      \
      uint2 group [[threadgroup_position_in_grid]], uint tid [[thread_index_in_threadgroup]],                   \
      uint lane [[thread_index_in_simdgroup]], uint sg [[simdgroup_index_in_threadgroup]]) {                    \
    threadgroup uint4 staged_x[FUSED_COLUMNS / PIECE];                                                          \
    threadgroup float sums[FUSED_COLUMNS / CHUNK];                                                              \
    threadgroup float partial[SIMD];                                                                            \
    threadgroup bfloat* xs = (threadgroup bfloat*)staged_x;                                                     \
    const RowShape shape = row_shape(FORMAT, p.columns, p.group_size);                                          \
    const uint pieces = p.columns / CHUNK * 2;                                                                  \
    const bool has_branch = p.has_branch != 0;                                                                  \
    Chunk next[OUTPUTS];                                                                                        \
    for (uint block = 0; block < BLOCKS; block++) {                                                             \
      uint first, outputs;                                                                                      \
      const uint which =                                                                                        \
          matrix_of(p, group.x * BLOCKS + block, MATVEC_SIMDGROUPS * OUTPUTS, first, outputs);                  \
      first += sg * OUTPUTS;                                                                                    \
      device const uint* codes = CHOSEN(codes);                                                                 \
      device const bfloat* scales = CHOSEN(scales);                                                             \
      device const bfloat* biases = CHOSEN(biases);                                                             \
      device T* out = CHOSEN(out);                                                                              \
      uint rows[OUTPUTS];                                                                                       \
      for (uint o = 0; o < OUTPUTS; o++) rows[o] = min(first + o, outputs - 1);                                 \
      if (first < outputs && lane < shape.chunks)                                                               \
        load_chunks<FORMAT, OUTPUTS>(codes, scales, biases, shape, rows, lane, next);                           \
      if (block == 0) { /* while the first weights are on their way */                                          \
        float v[FUSED_COLUMNS / NORM_THREADS];                                                                  \
        float squares = 0.0f;                                                                                   \
        for (uint i = 0; i < FUSED_COLUMNS / NORM_THREADS / PIECE; i++) {                                       \
          if (i * NORM_THREADS >= pieces) break;                                                                \
          load_residual(x, branch, has_branch, p.columns, i * NORM_THREADS + tid, v + i * PIECE);               \
          add_squares(v + i * PIECE, squares);                                                                  \
        }                                                                                                       \
        const float scale = norm_scale(squares, p.columns, p.eps, partial, lane, sg);                           \
        for (uint i = 0; i < FUSED_COLUMNS / NORM_THREADS / PIECE; i++) {                                       \
          if (i * NORM_THREADS >= pieces) break;                                                                \
          const uint piece = i * NORM_THREADS + tid;                                                            \
          write_normed(v + i * PIECE, scale, gain, p.columns, piece, group.x == 0, x_out, n);                   \
          stage_piece(FORMAT, v + i * PIECE, piece, piece < pieces, FUSED_COLUMNS / 2, xs, sums);               \
        }                                                                                                       \
        threadgroup_barrier(mem_flags::mem_threadgroup);                                                        \
      }                                                                                                         \
      if (first >= outputs) continue;                                                                           \
      float acc[OUTPUTS];                                                                                       \
      for (uint i = 0; i < OUTPUTS; i++) acc[i] = 0.0f;                                                         \
      matvec_block<FORMAT, OUTPUTS, 1>(codes, scales, biases, shape, rows, 0, p.columns, p.columns, xs, sums,   \
                                       FUSED_COLUMNS, lane, next, acc);                                         \
      MATVEC_STORE(T, OUTPUTS, 1, 0)                                                                            \
    }                                                                                                           \
  }
NORM_MATVEC(norm_matvec_q4_bf16_o4, AFFINE_4, bfloat, 4, 1)
NORM_MATVEC(norm_matvec_q4_bf16_o2, AFFINE_4, bfloat, 2, 1)
NORM_MATVEC(norm_matvec_q4_f32_o4, AFFINE_4, float, 4, 4)
NORM_MATVEC(norm_matvec_q8_f32_o1, AFFINE_8, float, 1, 1)

// ---------------------------------------------------------------------------------------------------------------
// Prefill: matrix times many rows.

struct GemmParams {
  uint columns;
  uint group_size;
  uint outputs;
  uint rows;
};

// out[r] = matrix * x[r]. codes, scales, biases (dense: codes alone); x [rows, columns] bf16; out [rows, outputs] T.
// A threadgroup of 4 simdgroups, SM by SN, each of 8 FM rows by 8 FN outputs: tiles of 8 FM SM by 8 FN SN.
// Grid (ceil(outputs / tile outputs), ceil(rows / tile rows)) of 128 threads.
#define GEMM(NAME, FORMAT, W, T, SM, SN, FM, FN)                                                             \
  [[max_total_threads_per_threadgroup(128)]] kernel void NAME(                                               \
      device const uint* codes [[buffer(0)]], device const bfloat* scales [[buffer(1)]],                     \
      device const bfloat* biases [[buffer(2)]], device const bfloat* x [[buffer(3)]],                       \
      device T* out [[buffer(4)]], constant GemmParams& p [[buffer(5)]],                                     \
      uint2 group [[threadgroup_position_in_grid]], uint tid [[thread_index_in_threadgroup]],                \
      uint sg [[simdgroup_index_in_threadgroup]]) {                                                          \
    threadgroup uint4 memory[TILE_WORDS(8 * FM * SM + 8 * FN * SN)];                                         \
    threadgroup uint source[8 * FM * SM];                                                                    \
    const uint row0 = group.y * (8 * FM * SM), first = group.x * (8 * FN * SN);                              \
    const uint m = sg / SN * (8 * FM), n = sg % SN * (8 * FN);                                               \
    if (tid < 8 * FM * SM) source[tid] = row0 + tid < p.rows ? row0 + tid : NO_ROW;                          \
    threadgroup_barrier(mem_flags::mem_threadgroup);                                                         \
    simdgroup_matrix<float, 8, 8> acc[FM * FN];                                                              \
    const uint rows = p.rows - row0;                                                                         \
    multiply_matrix<FORMAT, W, 8 * FM * SM, 8 * FN * SN, FM, FN>(                                            \
        codes, scales, biases, 0, first, p.outputs, x, source, p.columns, p.group_size,                      \
        rows, m, n, memory, tid, acc);                                                                 \
    threadgroup_barrier(mem_flags::mem_threadgroup);                                                         \
    const uint stride = 8 * FN * SN + 4;                                                                     \
    threadgroup float* sums = (threadgroup float*)memory;                                                    \
    put_sums<FM, FN>(acc, sums + m * stride + n, stride);                                                    \
    threadgroup_barrier(mem_flags::mem_threadgroup);                                                         \
    for (uint i = tid; i < min(rows, uint(8 * FM * SM)) * (FN * SN); i += TILE_THREADS) {                    \
      const uint r = i / (FN * SN), c = i % (FN * SN) * 8;                                                   \
      threadgroup const float* from = sums + r * stride + c;                                                 \
      write8(out, row0 + r, first + c, p.outputs, get4(from), get4(from + 4));                               \
    }                                                                                                        \
  }
#define GEMMS(FORMAT_NAME, FORMAT, W)                                   \
  GEMM(gemm_##FORMAT_NAME##_bf16_m64, FORMAT, W, bfloat, 2, 2, 4, 4)    \
  GEMM(gemm_##FORMAT_NAME##_f32_m64, FORMAT, W, float, 2, 2, 4, 4)      \
  GEMM(gemm_##FORMAT_NAME##_bf16_m32, FORMAT, W, bfloat, 1, 4, 4, 2)    \
  GEMM(gemm_##FORMAT_NAME##_f32_m32, FORMAT, W, float, 1, 4, 4, 2)      \
  GEMM(gemm_##FORMAT_NAME##_bf16_m16, FORMAT, W, bfloat, 1, 4, 2, 2)    \
  GEMM(gemm_##FORMAT_NAME##_f32_m16, FORMAT, W, float, 1, 4, 2, 2)
GEMMS(q4, AFFINE_4, bfloat)
GEMMS(q8, AFFINE_8, bfloat)
GEMMS(bf16, DENSE_BF16, bfloat)
GEMMS(f32, DENSE_F32, float)
