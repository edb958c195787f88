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

// Codes in the low bits of 2^23's mantissa are 2^23 more than themselves: two operations at full rate where a conversion
// from an integer is slow. exponent: 2^23's bits, which the compiler must not know (see RowShape).
constant constexpr float EXPONENT = 8388608.0f;
static inline float4 codes_4(uint w, uint exponent) {
  return float4(as_type<float>((w & 0xFu) | exponent), as_type<float>((w & 0xF0u) | exponent),
                as_type<float>((w & 0xF00u) | exponent), as_type<float>((w & 0xF000u) | exponent)) - EXPONENT;
}
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
// exponent: the bits of 2^23, in a register, where masking a code and adding it is one operation on some GPUs.
struct RowShape {
  uint chunks;
  uint groups;
  uint per_group;
  uint shift;
  uint exponent;
};
constant constexpr uint NO_SHIFT = 32;

static inline RowShape row_shape(uint format, uint columns, uint group_size) {
  RowShape shape = {0, 0, 1, 0, 0x4B000000u | columns >> 31};
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
static inline float add_chunk(Chunk w, uint exponent, threadgroup const bfloat* x, uint plane, float sum, float acc) {
  const uint4 low = *(threadgroup const uint4*)x, high = *(threadgroup const uint4*)(x + plane);
  const float4 x0 = float4(as_type<bfloat4>(low.xy)), x1 = float4(as_type<bfloat4>(low.zw));
  const float4 x2 = float4(as_type<bfloat4>(high.xy)), x3 = float4(as_type<bfloat4>(high.zw));
  float4 q;
  if (FORMAT == AFFINE_4) {
    q = codes_4(w.codes.x, exponent) * x0;
    q = fma(codes_4(w.codes.x >> 16, exponent), x1, q);
    q = fma(codes_4(w.codes.y, exponent), x2, q);
    q = fma(codes_4(w.codes.y >> 16, exponent), x3, q);
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
          acc[o * ROWS + r] =
              add_chunk<FORMAT>(w[o], shape.exponent, x + r * x_stride + c / 2, plane, sum, acc[o * ROWS + r]);
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
// Matrix times many rows (prefill). A threadgroup of 128 threads brings 64 columns (32 of fp32) of its rows and outputs
// to threadgroup memory at a time and multiplies them there; what the next step needs is already on its way from device
// memory into registers meanwhile. Every tile takes the columns of a format in one order, 8 at a time, in fp32.

constant constexpr uint TILE_THREADS = 128;
constant constexpr uint NO_ROW = 0xFFFFFFFFu;

// Columns of a tile, and elements from one of its rows to the next: 16 bytes more, against bank conflicts.
#define TILE_COLUMNS(T) uint(128 / sizeof(T))
#define TILE_STRIDE(T) uint(144 / sizeof(T))
// Threadgroup memory of so many rows of both operands together, or of their products in fp32.
#define TILE_WORDS(ROWS) ((ROWS) * 9)  // uint4
#define UNROLL _Pragma("clang loop unroll(full)")

// Four or eight neighbours at an address that is a multiple of their size.
static inline void put4(threadgroup bfloat* to, float4 v) { *(threadgroup bfloat4*)to = bfloat4(v); }
static inline void put4(threadgroup float* to, float4 v) { *(threadgroup float4*)to = v; }
static inline void put8(threadgroup bfloat* to, float4 low, float4 high) {
  *(threadgroup uint4*)to = uint4(as_type<uint2>(bfloat4(low)), as_type<uint2>(bfloat4(high)));
}
static inline void put8(threadgroup float* to, float4 low, float4 high) {
  put4(to, low);
  put4(to + 4, high);
}
static inline void put8(device bfloat* to, float4 low, float4 high) {
  *(device uint4*)to = uint4(as_type<uint2>(bfloat4(low)), as_type<uint2>(bfloat4(high)));
}
static inline void put8(device float* to, float4 low, float4 high) {
  ((device float4*)to)[0] = low;
  ((device float4*)to)[1] = high;
}

// The thread's share of ROWS rows of bf16 activations: pieces of 8 columns, neighbouring threads side by side.
template <uint ROWS>
struct RowShare {
  uint4 pieces[ROWS * 8 / TILE_THREADS];
};
// Columns [k, k + 64) of the rows that source[] names; zero past the last column and for NO_ROW. columns: a multiple
// of 8. Only the first `rows` rows are wanted, in steps of 16.
template <uint ROWS>
static inline void fetch_rows(device const bfloat* x, threadgroup const uint* source, uint rows, uint columns, uint k,
                              uint tid, thread RowShare<ROWS>& share) {
  UNROLL for (uint i = 0; i < ROWS * 8 / TILE_THREADS; i++) {
    if (16 * i < rows) {
      const uint row = source[tid / 8 + 16 * i], c = k + tid % 8 * 8;
      share.pieces[i] = row != NO_ROW && c < columns ? *(device const uint4*)(x + ulong(row) * columns + c) : uint4(0u);
    }
  }
}
template <uint ROWS>
static inline void put_rows(thread const RowShare<ROWS>& share, uint rows, threadgroup bfloat* tile, uint tid) {
  UNROLL for (uint i = 0; i < ROWS * 8 / TILE_THREADS; i++)
    if (16 * i < rows)
      *(threadgroup uint4*)(tile + (tid / 8 + 16 * i) * TILE_STRIDE(bfloat) + tid % 8 * 8) = share.pieces[i];
}

// The thread's share of OUTPUTS outputs: a run of 16 or 32 columns of one output's codes.
template <uint OUTPUTS>
struct CodeShare {
  Chunk chunks[OUTPUTS / 32];
};
// Columns [k, k + 64) of outputs [first, first + OUTPUTS) of a matrix of `outputs` that begins at row base of its
// stack. Outputs past the end repeat the last one; columns past the end are zero.
template <uint FORMAT, uint OUTPUTS>
static inline void fetch_codes(device const uint* codes, device const bfloat* scales, device const bfloat* biases,
                               ulong base, uint first, uint outputs, uint columns, uint group_size, uint k, uint tid,
                               thread CodeShare<OUTPUTS>& share) {
  const uint threads = TILE_THREADS / OUTPUTS;  // of an output
  const ulong row = base + min(first + tid / threads, outputs - 1);
  const uint c = k + tid % threads * (OUTPUTS / 2);
  UNROLL for (uint i = 0; i < OUTPUTS / 32; i++) {
    thread Chunk& chunk = share.chunks[i];
    const bool exists = c + CHUNK * i < columns;
    const ulong at = (row * columns + c) / CHUNK + i;
    if (!exists) {
      chunk.codes = uint4(0u);
    } else if (FORMAT == AFFINE_4) {
      const uint2 words = ((device const uint2*)codes)[at];
      chunk.codes = uint4(words.x, words.y, 0u, 0u);
    } else {
      chunk.codes = ((device const uint4*)codes)[at];
    }
    if (i > 0 && exists && group_size % 32 == 0) {
      chunk.scale = share.chunks[0].scale;
      chunk.bias = share.chunks[0].bias;
    } else {
      const ulong group = row * (columns / group_size) + (c + CHUNK * i) / group_size;
      chunk.scale = exists ? scales[group] : bfloat(0.0f);
      chunk.bias = exists ? biases[group] : bfloat(0.0f);
    }
  }
}
template <uint FORMAT, uint OUTPUTS>
static inline void put_codes(thread const CodeShare<OUTPUTS>& share, threadgroup bfloat* tile, uint tid) {
  const uint threads = TILE_THREADS / OUTPUTS;
  threadgroup bfloat* to = tile + tid / threads * TILE_STRIDE(bfloat) + tid % threads * (OUTPUTS / 2);
  UNROLL for (uint i = 0; i < OUTPUTS / 32; i++) {
    const uint4 w = share.chunks[i].codes;
    const float4 bias = float4(float(share.chunks[i].bias));
    if (FORMAT == AFFINE_4) {
      // Codes are masked, not shifted; their scales make up for it, exactly.
      const float4 scale = float(share.chunks[i].scale) * float4(1.0f, 0.0625f, 0.00390625f, 0.000244140625f);
      const uint exponent = as_type<uint>(EXPONENT);
      put8(to + 16 * i, fma(codes_4(w.x, exponent), scale, bias), fma(codes_4(w.x >> 16, exponent), scale, bias));
      put8(to + 16 * i + 8, fma(codes_4(w.y, exponent), scale, bias), fma(codes_4(w.y >> 16, exponent), scale, bias));
    } else {
      const float4 scale = float4(float(share.chunks[i].scale));
      put8(to + 16 * i, fma(codes_8(w.x), scale, bias), fma(codes_8(w.y), scale, bias));
      put8(to + 16 * i + 8, fma(codes_8(w.z), scale, bias), fma(codes_8(w.w), scale, bias));
    }
  }
}

// The same two operands for matrices without codes, whose rows may have any number of columns and any alignment.
template <typename T, uint ROWS>
static inline void stage_rows(device const bfloat* x, threadgroup const uint* source, threadgroup T* tile, uint columns,
                              uint k, uint tid) {
  for (uint i = tid; i < ROWS * TILE_COLUMNS(T); i += TILE_THREADS) {
    const uint r = i / TILE_COLUMNS(T), c = i % TILE_COLUMNS(T);
    const uint row = source[r];
    tile[r * TILE_STRIDE(T) + c] = row != NO_ROW && k + c < columns ? T(x[ulong(row) * columns + k + c]) : T(0.0f);
  }
}
template <typename T, uint OUTPUTS>
static inline void stage_values(device const uint* values, threadgroup T* tile, ulong base, uint first, uint outputs,
                                uint columns, uint k, uint tid) {
  for (uint i = tid; i < OUTPUTS * TILE_COLUMNS(T); i += TILE_THREADS) {
    const uint r = i / TILE_COLUMNS(T), c = i % TILE_COLUMNS(T);
    const ulong at = (base + min(first + r, outputs - 1)) * columns + k + c;
    tile[r * TILE_STRIDE(T) + c] = k + c < columns ? ((device const T*)values)[at] : T(0.0f);
  }
}

// acc[FM][FN] += 8 FM staged rows times 8 FN staged outputs; of the rows, those before `rows` at least.
template <typename T, uint FM, uint FN>
static inline void multiply_tiles(threadgroup const T* x, threadgroup const T* w, uint rows,
                                  thread simdgroup_matrix<float, 8, 8>* acc) {
  for (uint k = 0; k < TILE_COLUMNS(T); k += 8) {
    simdgroup_matrix<T, 8, 8> b[FN];
    UNROLL for (uint j = 0; j < FN; j++)
      simdgroup_load(b[j], w + 8 * j * TILE_STRIDE(T) + k, TILE_STRIDE(T), ulong2(0, 0), true);
    // No break: the loop must unroll, or the sums leave their registers.
    UNROLL for (uint i = 0; i < FM; i++) {
      if (8 * i < rows) {
        simdgroup_matrix<T, 8, 8> a;
        simdgroup_load(a, x + 8 * i * TILE_STRIDE(T) + k, TILE_STRIDE(T));
        UNROLL for (uint j = 0; j < FN; j++) simdgroup_multiply_accumulate(acc[i * FN + j], a, b[j], acc[i * FN + j]);
      }
    }
  }
}

// Puts a simdgroup's sums where the threadgroup's other threads find them, `stride` floats from row to row.
template <uint FM, uint FN>
static inline void put_sums(thread simdgroup_matrix<float, 8, 8>* acc, threadgroup float* to, uint stride) {
  UNROLL for (uint i = 0; i < FM; i++)
    UNROLL for (uint j = 0; j < FN; j++) simdgroup_store(acc[i * FN + j], to + 8 * i * stride + 8 * j, stride);
}
static inline float4 get4(threadgroup const float* from) { return *(threadgroup const float4*)from; }

// acc = the tile's ROWS rows, named by source[], of which the first `rows` are wanted, times its OUTPUTS outputs, spread
// over the simdgroups: 8 FM rows from m by 8 FN outputs from n. Leaves memory free to use after a barrier.
template <uint FORMAT, typename T, uint ROWS, uint OUTPUTS, uint FM, uint FN>
static inline void multiply_matrix(device const uint* codes, device const bfloat* scales, device const bfloat* biases,
                                   ulong base, uint first, uint outputs, device const bfloat* x,
                                   threadgroup const uint* source, uint columns, uint group_size, uint rows, uint m,
                                   uint n, threadgroup uint4* memory, uint tid,
                                   thread simdgroup_matrix<float, 8, 8>* acc) {
  threadgroup T* xs = (threadgroup T*)memory;
  threadgroup T* ws = xs + ROWS * TILE_STRIDE(T);
  UNROLL for (uint i = 0; i < FM * FN; i++) acc[i] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  RowShare<ROWS> row_share;
  CodeShare<OUTPUTS> code_share;
  const bool has_codes = FORMAT == AFFINE_4 || FORMAT == AFFINE_8;
  if (has_codes) {
    fetch_rows<ROWS>(x, source, rows, columns, 0, tid, row_share);
    fetch_codes<FORMAT, OUTPUTS>(codes, scales, biases, base, first, outputs, columns, group_size, 0, tid, code_share);
  }
  for (uint k = 0; k < columns; k += TILE_COLUMNS(T)) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (has_codes) {
      put_rows<ROWS>(row_share, rows, (threadgroup bfloat*)xs, tid);
      put_codes<FORMAT, OUTPUTS>(code_share, (threadgroup bfloat*)ws, tid);
    } else {
      stage_rows<T, ROWS>(x, source, xs, columns, k, tid);
      stage_values<T, OUTPUTS>(codes, ws, base, first, outputs, columns, k, tid);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint next = k + TILE_COLUMNS(T);
    if (has_codes && next < columns) {
      fetch_rows<ROWS>(x, source, rows, columns, next, tid, row_share);
      fetch_codes<FORMAT, OUTPUTS>(codes, scales, biases, base, first, outputs, columns, group_size, next, tid,
                                   code_share);
    }
    multiply_tiles<T, FM, FN>(xs + m * TILE_STRIDE(T), ws + n * TILE_STRIDE(T), rows > m ? rows - m : 0, acc);
  }
}

// Eight neighbouring results of a row of `outputs`, as far as they exist.
template <typename T>
static inline void write8(device T* out, ulong row, uint output, uint outputs, float4 low, float4 high) {
  device T* to = out + row * outputs + output;
  if (outputs % 8 == 0) {
    if (output < outputs) put8(to, low, high);
  } else {
    UNROLL for (uint j = 0; j < 8; j++)
      if (output + j < outputs) to[j] = T(j < 4 ? low[j % 4] : high[j % 4]);
  }
}

// Tiles of assignments of tokens to experts, grouped by expert.
constant constexpr uint EXPERT_TILE_ROWS = 64;

struct ExpertTileParams {
  uint columns;
  uint group_size;
  uint outputs;
  uint rows;        // of x, or assignments
  uint experts;     // 0: one expert over all rows in order, offsets, tiles and order are not read
  uint per_token;
  uint gate_rows;   // rows of the stack from one expert to the next
  uint up_rows;
};

// The expert of a tile, its first assignment and how many; 0 of them past the last tile.
static inline uint tile_expert(device const uint* offsets, device const uint* tiles, constant ExpertTileParams& p,
                               uint tile, thread uint& first, thread uint& count) {
  if (p.experts == 0) {
    first = tile * EXPERT_TILE_ROWS;
    count = first < p.rows ? min(EXPERT_TILE_ROWS, p.rows - first) : 0u;
    return 0;
  }
  if (tile >= tiles[p.experts]) {
    first = 0;
    count = 0;
    return 0;
  }
  uint low = 0, high = p.experts;  // tiles[low] <= tile < tiles[high]
  while (high - low > 1) {
    const uint middle = (low + high) / 2;
    if (tiles[middle] <= tile) {
      low = middle;
    } else {
      high = middle;
    }
  }
  first = offsets[low] + (tile - tiles[low]) * EXPERT_TILE_ROWS;
  count = min(EXPERT_TILE_ROWS, offsets[low + 1] - first);
  return low;
}

// ---------------------------------------------------------------------------------------------------------------
// What sequences bring to a pass, and where their keys and values lie. A page holds page_tokens tokens of all attention
// layers; a layer's part of it is bf16 [2, kv_heads, page_tokens, head_dim]: keys, then values.

struct Sequence {
  uint first_row;
  uint num_rows;
  uint slot;      // recurrent slot
  uint position;  // of the first row
};

struct AttentionParams {
  uint heads;
  uint kv_heads;
  uint head_dim;      // at most 256
  uint rotary_dim;
  uint page_tokens;
  uint page_stride;   // elements from one page to the next
  uint layer_offset;  // elements from a page's start to this layer's part
  uint max_pages;     // entries of a sequence's page table
  uint rows;          // rows of the query layout
  float eps;
  float scale;        // of the scores
};

// Offset of a token's key of one head; its value lies kv_heads * page_tokens * head_dim further on.
static inline ulong key_at(constant AttentionParams& p, device const uint* table, uint head, uint token) {
  return ulong(table[token / p.page_tokens]) * p.page_stride + p.layer_offset +
         (head * p.page_tokens + token % p.page_tokens) * p.head_dim;
}
static inline uint value_offset(constant AttentionParams& p) { return p.kv_heads * p.page_tokens * p.head_dim; }
