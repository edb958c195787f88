// ---------------------------------------------------------------------------------------------------------------
// Decode: matrix times a few rows. A simdgroup makes OUTPUTS outputs; lane l takes the 16 columns from 16 (l + 32 i)
// for i = 0, 1, ..., so an output's sum has one order whatever the kernel's number of rows, outputs or matrices.

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

constant constexpr uint MATVEC_SIMDGROUPS = 8;
constant constexpr uint CHUNK = 16;                 // columns of a lane
constant constexpr uint STRIDE = CHUNK * SIMD;      // columns of a simdgroup
constant constexpr uint FUSED_COLUMNS = 4096;       // most columns of a kernel that normalises its input itself

// A column's activation as it is staged: for 4-bit codes column c is scaled by 16^-(c mod 4), so that a code needs to
// be masked but not shifted. Powers of two: exact.
static inline bfloat staged(uint format, float x, uint c) {
  if (format != AFFINE_4) return bfloat(x);
  const uint j = c % 4;
  return bfloat(x * (j == 0 ? 1.0f : j == 1 ? 0.0625f : j == 2 ? 0.00390625f : 0.000244140625f));
}
static inline float unstaged(uint format, bfloat x, uint c) {
  if (format != AFFINE_4) return float(x);
  const uint j = c % 4;
  return float(x) * (j == 0 ? 1.0f : j == 1 ? 16.0f : j == 2 ? 256.0f : 4096.0f);
}

static inline float4 codes_4(uint w) { return float4(float(w & 0xFu), float(w & 0xF0u), float(w & 0xF00u), float(w & 0xF000u)); }
static inline float4 codes_8(uint w) {
  return float4(float(w & 0xFFu), float((w >> 8) & 0xFFu), float((w >> 16) & 0xFFu), float(w >> 24));
}
static inline float sum_of(float4 v) { return (v.x + v.y) + (v.z + v.w); }

// One lane's weights of one output: 16 columns.
struct Chunk {
  uint4 codes;
  float scale;
  float bias;
};

template <uint FORMAT>
static inline Chunk load_chunk(device const uint* codes, device const bfloat* scales, device const bfloat* biases,
                               ulong row, uint chunk, uint columns, uint group_size) {
  Chunk w;
  if (FORMAT == AFFINE_4) {
    const uint2 c = ((device const uint2*)codes)[row * (columns / CHUNK) + chunk];
    w.codes = uint4(c.x, c.y, 0u, 0u);
  } else {
    w.codes = ((device const uint4*)codes)[row * (columns / CHUNK) + chunk];
  }
  const ulong g = row * (columns / group_size) + chunk * CHUNK / group_size;
  w.scale = float(scales[g]);
  w.bias = float(biases[g]);
  return w;
}

// scale * sum(code x) + bias * sum(x), on top of acc. x: 16 staged activations; sum: theirs, unstaged.
template <uint FORMAT>
static inline float add_chunk(Chunk w, threadgroup const bfloat* x, float sum, float acc) {
  threadgroup const bfloat4* x4 = (threadgroup const bfloat4*)x;
  const float4 x0 = float4(x4[0]), x1 = float4(x4[1]), x2 = float4(x4[2]), x3 = float4(x4[3]);
  float4 q;
  if (FORMAT == AFFINE_4) {
    q = codes_4(w.codes.x) * x0;
    q = fma(codes_4(w.codes.x >> 16), x1, q);
    q = fma(codes_4(w.codes.y), x2, q);
    q = fma(codes_4(w.codes.y >> 16), x3, q);
  } else {
    q = codes_8(w.codes.x) * x0;
    q = fma(codes_8(w.codes.y), x1, q);
    q = fma(codes_8(w.codes.z), x2, q);
    q = fma(codes_8(w.codes.w), x3, q);
  }
  return fma(w.scale, sum_of(q), fma(w.bias, sum, acc));
}

// The same for weights without codes; columns past the end are left out.
template <uint FORMAT>
static inline float add_dense(device const uint* values, ulong row, uint c0, uint columns, threadgroup const bfloat* x,
                              float acc) {
  for (uint j = 0; j < CHUNK && c0 + j < columns; j++) {
    const ulong at = row * columns + c0 + j;
    const float w = FORMAT == DENSE_BF16 ? float(((device const bfloat*)values)[at]) : ((device const float*)values)[at];
    acc = fma(w, float(x[j]), acc);
  }
  return acc;
}

// Outputs [first, first + OUTPUTS) of one matrix over the staged columns [k0, k0 + staged).
template <uint FORMAT, uint OUTPUTS, uint ROWS>
static inline void matvec_block(device const uint* codes, device const bfloat* scales, device const bfloat* biases,
                                ulong first, uint outputs, uint k0, uint count, uint columns, uint group_size,
                                threadgroup const bfloat* x, threadgroup const float* sums, uint x_stride, uint lane,
                                thread float* acc) {
  for (uint c = lane * CHUNK; c < count; c += STRIDE) {
    if (FORMAT == AFFINE_4 || FORMAT == AFFINE_8) {
      Chunk w[OUTPUTS];
      for (uint o = 0; o < OUTPUTS; o++)
        w[o] = load_chunk<FORMAT>(codes, scales, biases, min(first + o, ulong(outputs - 1)), (k0 + c) / CHUNK, columns,
                                  group_size);
      for (uint r = 0; r < ROWS; r++) {
        const float sum = sums[(r * x_stride + c) / CHUNK];
        for (uint o = 0; o < OUTPUTS; o++)
          acc[o * ROWS + r] = add_chunk<FORMAT>(w[o], x + r * x_stride + c, sum, acc[o * ROWS + r]);
      }
    } else {
      for (uint r = 0; r < ROWS; r++)
        for (uint o = 0; o < OUTPUTS; o++)
          acc[o * ROWS + r] = add_dense<FORMAT>(codes, min(first + o, ulong(outputs - 1)), k0 + c, columns,
                                                x + r * x_stride + c, acc[o * ROWS + r]);
    }
  }
}

// Sums of the staged activations, chunk by chunk.
static inline void stage_sums(uint format, threadgroup const bfloat* x, threadgroup float* sums, uint chunks, uint tid,
                              uint threads) {
  for (uint i = tid; i < chunks; i += threads) {
    float s = 0.0f;
    for (uint j = 0; j < CHUNK; j++) s += unstaged(format, x[i * CHUNK + j], j);
    sums[i] = s;
  }
}

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
    threadgroup bfloat xs[ROWS * BLOCK];                                                                         \
    threadgroup float sums[ROWS * BLOCK / CHUNK];                                                                \
    uint first, outputs;                                                                                         \
    const uint which = matrix_of(p, group.x, MATVEC_SIMDGROUPS * OUTPUTS, first, outputs);                       \
    first += sg * OUTPUTS;                                                                                       \
    const uint row0 = group.y * ROWS;                                                                            \
    device const uint* codes = CHOSEN(codes);                                                                    \
    device const bfloat* scales = CHOSEN(scales);                                                                \
    device const bfloat* biases = CHOSEN(biases);                                                                \
    device T* out = CHOSEN(out);                                                                                 \
    float acc[OUTPUTS * ROWS];                                                                                   \
    for (uint i = 0; i < OUTPUTS * ROWS; i++) acc[i] = 0.0f;                                                     \
    for (uint k0 = 0; k0 < p.columns; k0 += BLOCK) {                                                             \
      const uint count = min(uint(BLOCK), p.columns - k0);                                                       \
      threadgroup_barrier(mem_flags::mem_threadgroup);                                                           \
      for (uint i = tid; i < ROWS * BLOCK; i += 256) {                                                           \
        const uint r = i / BLOCK, c = i % BLOCK;                                                                 \
        if (c < (count + CHUNK - 1) / CHUNK * CHUNK)                                                             \
          xs[i] = c < count && row0 + r < p.rows                                                                 \
                      ? staged(FORMAT, float(x[ulong(row0 + r) * p.columns + k0 + c]), c)                        \
                      : bfloat(0.0f);                                                                            \
      }                                                                                                          \
      threadgroup_barrier(mem_flags::mem_threadgroup);                                                           \
      if (FORMAT == AFFINE_4 || FORMAT == AFFINE_8) {                                                            \
        for (uint r = 0; r < ROWS; r++)                                                                          \
          stage_sums(FORMAT, xs + r * BLOCK, sums + r * (BLOCK / CHUNK), count / CHUNK, tid, 256);               \
        threadgroup_barrier(mem_flags::mem_threadgroup);                                                         \
      }                                                                                                          \
      if (first < outputs)                                                                                       \
        matvec_block<FORMAT, OUTPUTS, ROWS>(codes, scales, biases, first, outputs, k0, count, p.columns,         \
                                            p.group_size, xs, sums, BLOCK, lane, acc);                           \
    }                                                                                                            \
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
// columns at most 4096. Grid and threads as above.
#define NORM_MATVEC(NAME, FORMAT, T, OUTPUTS)                                                                    \
  [[max_total_threads_per_threadgroup(256)]] kernel void NAME(                                                   \
      MATRIX(0, 0, 1, 2), MATRIX(1, 3, 4, 5), MATRIX(2, 6, 7, 8), MATRIX(3, 9, 10, 11), device const float* x [[buffer(12)]],              \
      device T* out_0 [[buffer(13)]], device T* out_1 [[buffer(14)]], device T* out_2 [[buffer(15)]],            \
      device T* out_3 [[buffer(16)]], constant MatvecParams& p [[buffer(17)]],                                   \
      device const bfloat* branch [[buffer(18)]], device const float* gain [[buffer(19)]],                       \
      device float* x_out [[buffer(20)]], device bfloat* n [[buffer(21)]],                                       \
      uint2 group [[threadgroup_position_in_grid]], uint tid [[thread_index_in_threadgroup]],                    \
      uint lane [[thread_index_in_simdgroup]], uint sg [[simdgroup_index_in_threadgroup]]) {                     \
    threadgroup bfloat xs[FUSED_COLUMNS];                                                                        \
    threadgroup float sums[FUSED_COLUMNS / CHUNK];                                                               \
    threadgroup float partial[SIMD];                                                                             \
    uint first, outputs;                                                                                         \
    const uint which = matrix_of(p, group.x, MATVEC_SIMDGROUPS * OUTPUTS, first, outputs);                       \
    first += sg * OUTPUTS;                                                                                       \
    device const uint* codes = CHOSEN(codes);                                                                    \
    device const bfloat* scales = CHOSEN(scales);                                                                \
    device const bfloat* biases = CHOSEN(biases);                                                                \
    device T* out = CHOSEN(out);                                                                                 \
    const bool has_branch = p.has_branch != 0;                                                                   \
    const float scale = residual_scale(x, branch, has_branch, p.columns, p.eps, partial, tid, lane, sg);         \
    for (uint c = tid; c < p.columns; c += NORM_THREADS) {                                                       \
      const float v = has_branch ? x[c] + float(branch[c]) : x[c];                                               \
      const bfloat normed = bfloat(v * scale * gain[c]);                                                         \
      if (group.x == 0) {                                                                                        \
        x_out[c] = v;                                                                                            \
        n[c] = normed;                                                                                           \
      }                                                                                                          \
      xs[c] = staged(FORMAT, float(normed), c);                                                                  \
    }                                                                                                            \
    threadgroup_barrier(mem_flags::mem_threadgroup);                                                             \
    stage_sums(FORMAT, xs, sums, p.columns / CHUNK, tid, 256);                                                   \
    threadgroup_barrier(mem_flags::mem_threadgroup);                                                             \
    float acc[OUTPUTS];                                                                                          \
    for (uint i = 0; i < OUTPUTS; i++) acc[i] = 0.0f;                                                            \
    if (first < outputs)                                                                                         \
      matvec_block<FORMAT, OUTPUTS, 1>(codes, scales, biases, first, outputs, 0, p.columns, p.columns,           \
                                       p.group_size, xs, sums, FUSED_COLUMNS, lane, acc);                        \
    MATVEC_STORE(T, OUTPUTS, 1, 0)                                                                               \
  }
NORM_MATVEC(norm_matvec_q4_bf16_o4, AFFINE_4, bfloat, 4)
NORM_MATVEC(norm_matvec_q4_bf16_o2, AFFINE_4, bfloat, 2)
NORM_MATVEC(norm_matvec_q4_f32_o4, AFFINE_4, float, 4)
NORM_MATVEC(norm_matvec_q8_f32_o1, AFFINE_8, float, 1)
