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
constant constexpr uint MATVEC_SIMDGROUPS = 8;  // of a threadgroup of the decode products

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

// A threadgroup of 256 threads takes a row in pieces of 8 columns: thread t owns the pieces t, t + 256, ...
constant constexpr uint NORM_THREADS = 256;
constant constexpr uint PIECE = 8;

// A piece of x + branch; zero past the last column. Rows of whole pieces are 16-byte aligned.
static inline void load_residual(device const float* x, device const bfloat* branch, bool has_branch, uint columns,
                                 uint piece, thread float* v) {
  if (columns % PIECE == 0 && piece < columns / PIECE) {
    float4 low = ((device const float4*)x)[2 * piece], high = ((device const float4*)x)[2 * piece + 1];
    if (has_branch) {
      low += float4(((device const bfloat4*)branch)[2 * piece]);
      high += float4(((device const bfloat4*)branch)[2 * piece + 1]);
    }
    for (uint j = 0; j < 4; j++) {
      v[j] = low[j];
      v[4 + j] = high[j];
    }
  } else {
    for (uint j = 0; j < PIECE; j++) {
      const uint c = piece * PIECE + j;
      v[j] = c >= columns ? 0.0f : has_branch ? x[c] + float(branch[c]) : x[c];
    }
  }
}

static inline void add_squares(thread const float* v, thread float& squares) {
  for (uint j = 0; j < PIECE; j++) squares = fma(v[j], v[j], squares);
}

// 1 / rms from a thread's squares, the same in every thread.
static inline float norm_scale(float squares, uint columns, float eps, threadgroup float* partial, uint lane, uint sg) {
  const float sum = threadgroup_sum(squares, partial, lane, sg, NORM_THREADS / SIMD);
  return 1.0f / sqrt(sum / float(columns) + eps);
}

// Writes a piece of x + branch and of its norm, which is left in v.
static inline void write_normed(thread float* v, float scale, device const float* gain, uint columns, uint piece,
                                bool is_written, device float* x_out, device bfloat* n) {
  if (columns % PIECE == 0 && piece < columns / PIECE) {
    const float4 low = ((device const float4*)gain)[2 * piece], high = ((device const float4*)gain)[2 * piece + 1];
    if (is_written) {
      ((device float4*)x_out)[2 * piece] = float4(v[0], v[1], v[2], v[3]);
      ((device float4*)x_out)[2 * piece + 1] = float4(v[4], v[5], v[6], v[7]);
    }
    bfloat4 normed_low, normed_high;
    for (uint j = 0; j < 4; j++) {
      normed_low[j] = bfloat(v[j] * scale * low[j]);
      normed_high[j] = bfloat(v[4 + j] * scale * high[j]);
      v[j] = float(normed_low[j]);
      v[4 + j] = float(normed_high[j]);
    }
    if (is_written) {
      ((device bfloat4*)n)[2 * piece] = normed_low;
      ((device bfloat4*)n)[2 * piece + 1] = normed_high;
    }
  } else {
    for (uint j = 0; j < PIECE; j++) {
      const uint c = piece * PIECE + j;
      if (c >= columns) break;
      const bfloat normed = bfloat(v[j] * scale * gain[c]);
      if (is_written) {
        x_out[c] = v[j];
        n[c] = normed;
      }
      v[j] = float(normed);
    }
  }
}

// ---------------------------------------------------------------------------------------------------------------
// Matrix times a few rows (decode). A simdgroup makes one or more outputs; lane l takes the 16 columns from
// 16 (l + 32 i) for i = 0, 1, ..., so an output's sum has one order whatever the number of rows, outputs or matrices.

constant constexpr uint CHUNK = 16;                 // columns of a lane
constant constexpr uint STRIDE = CHUNK * SIMD;      // columns of a simdgroup

// Four columns' activations as they are staged: for 4-bit codes column c is scaled by 16^-(c mod 4), so that a code needs
// to be masked but not shifted. Powers of two: exact.
static inline bfloat4 staged(uint format, float4 x) {
  return format == AFFINE_4 ? bfloat4(x * float4(1.0f, 0.0625f, 0.00390625f, 0.000244140625f)) : bfloat4(x);
}

// Stages a piece of a row of bf16 values, and the sum of a chunk with the next lane's piece: all lanes of a simdgroup
// arrive, with pieces side by side. The first pieces of chunks lie in one plane, the second ones in another, so that the
// lanes of a simdgroup read 16 bytes side by side.
static inline void stage_piece(uint format, thread const float* v, uint piece, bool is_real, uint plane,
                               threadgroup bfloat* xs, threadgroup float* sums) {
  const float4 low = float4(v[0], v[1], v[2], v[3]), high = float4(v[4], v[5], v[6], v[7]);
  float sum = ((low.x + low.y) + (low.z + low.w)) + ((high.x + high.y) + (high.z + high.w));
  sum += simd_shuffle_xor(sum, ushort(1));
  if (!is_real) return;
  threadgroup bfloat4* to = (threadgroup bfloat4*)(xs + piece % 2 * plane + piece / 2 * PIECE);
  to[0] = staged(format, low);
  to[1] = staged(format, high);
  if (piece % 2 == 0) sums[piece / 2] = sum;
}

// A piece of a row of `count` columns; zero past the last. is_aligned: the row begins at a multiple of 16 bytes.
static inline void load_piece(device const bfloat* x, uint count, uint piece, bool is_aligned, thread float* v) {
  if (is_aligned && (piece + 1) * PIECE <= count) {
    const uint4 words = ((device const uint4*)x)[piece];
    const float4 low = float4(as_type<bfloat4>(words.xy)), high = float4(as_type<bfloat4>(words.zw));
    for (uint j = 0; j < 4; j++) {
      v[j] = low[j];
      v[4 + j] = high[j];
    }
  } else {
    for (uint j = 0; j < PIECE; j++) v[j] = piece * PIECE + j < count ? float(x[piece * PIECE + j]) : 0.0f;
  }
}

static inline float4 codes_4(uint w) { return float4(float(w & 0xFu), float(w & 0xF0u), float(w & 0xF00u), float(w & 0xF000u)); }
static inline float4 codes_8(uint w) {
  return float4(float(w & 0xFFu), float((w >> 8) & 0xFFu), float((w >> 16) & 0xFFu), float(w >> 24));
}
static inline float sum_of(float4 v) { return (v.x + v.y) + (v.z + v.w); }

// One lane's weights of one output: 16 columns. As they were loaded: a conversion would wait for them.
struct Chunk {
  uint4 codes;
  bfloat scale;
  bfloat bias;
};

// How rows lie in a matrix: chunks and groups of a row, chunks of a group and, if that is a power of two, its logarithm.
struct RowShape {
  uint chunks;
  uint groups;
  uint per_group;
  uint shift;
};
constant constexpr uint NO_SHIFT = 32;

static inline RowShape row_shape(uint format, uint columns, uint group_size) {
  RowShape shape = {0, 0, 1, 0};
  if (format != AFFINE_4 && format != AFFINE_8) return shape;
  shape.chunks = columns / CHUNK;
  shape.groups = columns / group_size;
  shape.per_group = group_size / CHUNK;
  while (1u << shape.shift < shape.per_group) shape.shift++;
  if (1u << shape.shift != shape.per_group) shape.shift = NO_SHIFT;
  return shape;
}

// The group of a row's chunk.
static inline uint group_of(RowShape shape, uint chunk) {
  return shape.shift == NO_SHIFT ? chunk / shape.per_group : chunk >> shape.shift;
}

template <uint FORMAT>
static inline Chunk load_chunk(device const uint* codes, device const bfloat* scales, device const bfloat* biases,
                               RowShape shape, uint row, uint chunk, uint group) {
  Chunk w;
  const uint at = row * shape.chunks + chunk;
  if (FORMAT == AFFINE_4) {
    const uint2 c = ((device const uint2*)codes)[at];
    w.codes = uint4(c.x, c.y, 0u, 0u);
  } else {
    w.codes = ((device const uint4*)codes)[at];
  }
  w.scale = scales[row * shape.groups + group];
  w.bias = biases[row * shape.groups + group];
  return w;
}

// scale * sum(code x) + bias * sum(x), on top of acc. x: a chunk of staged activations, its second piece a plane further;
// sum: theirs, unscaled.
template <uint FORMAT>
static inline float add_chunk(Chunk w, threadgroup const bfloat* x, uint plane, float sum, float acc) {
  const uint4 low = *(threadgroup const uint4*)x, high = *(threadgroup const uint4*)(x + plane);
  const float4 x0 = float4(as_type<bfloat4>(low.xy)), x1 = float4(as_type<bfloat4>(low.zw));
  const float4 x2 = float4(as_type<bfloat4>(high.xy)), x3 = float4(as_type<bfloat4>(high.zw));
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
  return fma(float(w.scale), sum_of(q), fma(float(w.bias), sum, acc));
}

// The same for weights without codes; columns past the end are left out.
template <uint FORMAT>
static inline float add_dense(device const uint* values, ulong row, uint c0, uint columns, threadgroup const bfloat* x,
                              uint plane, float acc) {
  for (uint j = 0; j < CHUNK && c0 + j < columns; j++) {
    const ulong at = row * columns + c0 + j;
    const float w = FORMAT == DENSE_BF16 ? float(((device const bfloat*)values)[at]) : ((device const float*)values)[at];
    acc = fma(w, float(x[j / PIECE * plane + j % PIECE]), acc);
  }
  return acc;
}

template <uint FORMAT, uint OUTPUTS>
static inline void load_chunks(device const uint* codes, device const bfloat* scales, device const bfloat* biases,
                               RowShape shape, thread const uint* rows, uint chunk, thread Chunk* w) {
  const uint group = group_of(shape, chunk);
  for (uint o = 0; o < OUTPUTS; o++) w[o] = load_chunk<FORMAT>(codes, scales, biases, shape, rows[o], chunk, group);
}

// A lane's part of some rows of a matrix over the staged columns [k0, k0 + count). A chunk is fetched while the one before
// it is multiplied; `next` holds the first ones.
template <uint FORMAT, uint OUTPUTS, uint ROWS>
static inline void matvec_block(device const uint* codes, device const bfloat* scales, device const bfloat* biases,
                                RowShape shape, thread const uint* rows, uint k0, uint count, uint columns,
                                threadgroup const bfloat* x, threadgroup const float* sums, uint x_stride, uint lane,
                                thread Chunk* next, thread float* acc) {
  const uint plane = x_stride / 2;
  for (uint c = lane * CHUNK; c < count; c += STRIDE) {
    if (FORMAT == AFFINE_4 || FORMAT == AFFINE_8) {
      Chunk w[OUTPUTS];
      for (uint o = 0; o < OUTPUTS; o++) w[o] = next[o];
      if (c + STRIDE < count)
        load_chunks<FORMAT, OUTPUTS>(codes, scales, biases, shape, rows, (k0 + c + STRIDE) / CHUNK, next);
      for (uint r = 0; r < ROWS; r++) {
        const float sum = sums[(r * x_stride + c) / CHUNK];
        for (uint o = 0; o < OUTPUTS; o++)
          acc[o * ROWS + r] = add_chunk<FORMAT>(w[o], x + r * x_stride + c / 2, plane, sum, acc[o * ROWS + r]);
      }
    } else {
      for (uint r = 0; r < ROWS; r++)
        for (uint o = 0; o < OUTPUTS; o++)
          acc[o * ROWS + r] =
              add_dense<FORMAT>(codes, rows[o], k0 + c, columns, x + r * x_stride + c / 2, plane, acc[o * ROWS + r]);
    }
  }
}

// ---------------------------------------------------------------------------------------------------------------
// Matrix times many rows (prefill): tiles of 32 columns of activations and weights in threadgroup memory, products by
// simdgroup_matrix in steps of 8 columns, fp32 sums. Every tile shape takes the columns in the same order.

constant constexpr uint TILE_COLUMNS = 32;
constant constexpr uint TILE_STRIDE = TILE_COLUMNS + 8;  // of a tile row, against bank conflicts
constant constexpr uint TILE_THREADS = 128;
constant constexpr uint NO_ROW = 0xFFFFFFFFu;

// Columns [k0, k0 + 32) of the rows that source[] names; zero past the last column and for NO_ROW.
template <typename T, uint ROWS>
static inline void stage_rows(device const bfloat* x, threadgroup const uint* source, threadgroup T* tile, uint columns,
                              uint k0, uint tid) {
  for (uint i = tid; i < ROWS * TILE_COLUMNS / 8; i += TILE_THREADS) {
    const uint r = i / (TILE_COLUMNS / 8), c = i % (TILE_COLUMNS / 8) * 8;
    const uint row = source[r];
    threadgroup T* to = tile + r * TILE_STRIDE + c;
    device const bfloat* from = x + (row == NO_ROW ? 0 : ulong(row) * columns) + k0 + c;
    if (row != NO_ROW && columns % 8 == 0 && k0 + c < columns) {
      const bfloat4 low = ((device const bfloat4*)from)[0], high = ((device const bfloat4*)from)[1];
      for (uint j = 0; j < 4; j++) {
        to[j] = T(low[j]);
        to[4 + j] = T(high[j]);
      }
    } else {
      for (uint j = 0; j < 8; j++) to[j] = row != NO_ROW && k0 + c + j < columns ? T(from[j]) : T(0.0f);
    }
  }
}

// Columns [k0, k0 + 32) of outputs [first, first + OUTPUTS) of a matrix of `outputs` that begins at row base of its
// stack, as T. Outputs past the end repeat the last one.
template <uint FORMAT, typename T, uint OUTPUTS>
static inline void stage_weights(device const uint* codes, device const bfloat* scales, device const bfloat* biases,
                                 threadgroup T* tile, ulong base, uint first, uint outputs, uint columns,
                                 uint group_size, uint k0, uint tid) {
  for (uint i = tid; i < OUTPUTS * TILE_COLUMNS / 8; i += TILE_THREADS) {
    const uint r = i / (TILE_COLUMNS / 8), c = i % (TILE_COLUMNS / 8) * 8;
    const ulong row = base + min(first + r, outputs - 1);
    threadgroup T* to = tile + r * TILE_STRIDE + c;
    if (FORMAT == DENSE_BF16 || FORMAT == DENSE_F32) {
      for (uint j = 0; j < 8; j++) {
        const ulong at = row * columns + k0 + c + j;
        T v = T(0.0f);
        if (k0 + c + j < columns)
          v = FORMAT == DENSE_BF16 ? T(((device const bfloat*)codes)[at]) : T(((device const float*)codes)[at]);
        to[j] = v;
      }
    } else if (k0 + c >= columns) {
      for (uint j = 0; j < 8; j++) to[j] = T(0.0f);
    } else {
      const ulong g = row * (columns / group_size) + (k0 + c) / group_size;
      const float scale = float(scales[g]), bias = float(biases[g]);
      if (FORMAT == AFFINE_4) {
        const uint w = codes[(row * columns + k0 + c) / 8];
        for (uint j = 0; j < 8; j++) to[j] = T(fma(scale, float((w >> (4 * j)) & 15u), bias));
      } else {
        const uint2 w = ((device const uint2*)codes)[(row * columns + k0 + c) / 8];
        for (uint j = 0; j < 4; j++) {
          to[j] = T(fma(scale, float((w.x >> (8 * j)) & 255u), bias));
          to[4 + j] = T(fma(scale, float((w.y >> (8 * j)) & 255u), bias));
        }
      }
    }
  }
}

// acc[FM][FN] += 8 FM staged rows times 8 FN staged outputs.
template <typename T, uint FM, uint FN>
static inline void multiply_tiles(threadgroup const T* x, threadgroup const T* w,
                                  thread simdgroup_matrix<float, 8, 8>* acc) {
  for (uint k = 0; k < TILE_COLUMNS; k += 8) {
    simdgroup_matrix<T, 8, 8> a[FM];
    simdgroup_matrix<T, 8, 8> b[FN];
    for (uint i = 0; i < FM; i++) simdgroup_load(a[i], x + 8 * i * TILE_STRIDE + k, TILE_STRIDE);
    for (uint j = 0; j < FN; j++) simdgroup_load(b[j], w + 8 * j * TILE_STRIDE + k, TILE_STRIDE, ulong2(0, 0), true);
    for (uint i = 0; i < FM; i++)
      for (uint j = 0; j < FN; j++) simdgroup_multiply_accumulate(acc[i * FN + j], a[i], b[j], acc[i * FN + j]);
  }
}

// Spreads 8 rows of FN fragments over a simdgroup's own 64 FN floats of threadgroup memory.
template <uint FN>
static inline void spread(thread simdgroup_matrix<float, 8, 8>* fragments, threadgroup float* strip) {
  simdgroup_barrier(mem_flags::mem_threadgroup);
  for (uint j = 0; j < FN; j++) simdgroup_store(fragments[j], strip + 8 * j, 8 * FN);
  simdgroup_barrier(mem_flags::mem_threadgroup);
}
