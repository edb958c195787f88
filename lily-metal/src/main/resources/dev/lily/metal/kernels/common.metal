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

// ---------------------------------------------------------------------------------------------------------------
// Matrix times a few rows (decode). A simdgroup makes one or more outputs; lane l takes the 16 columns from
// 16 (l + 32 i) for i = 0, 1, ..., so an output's sum has one order whatever the number of rows, outputs or matrices.

constant constexpr uint CHUNK = 16;                 // columns of a lane
constant constexpr uint STRIDE = CHUNK * SIMD;      // columns of a simdgroup

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
// of 8.
template <uint ROWS>
static inline void fetch_rows(device const bfloat* x, threadgroup const uint* source, uint columns, uint k, uint tid,
                              thread RowShare<ROWS>& share) {
  UNROLL for (uint i = 0; i < ROWS * 8 / TILE_THREADS; i++) {
    const uint r = tid / 8 + i * (TILE_THREADS / 8), c = k + tid % 8 * 8;
    const uint row = source[r];
    share.pieces[i] = row != NO_ROW && c < columns ? *(device const uint4*)(x + ulong(row) * columns + c) : uint4(0u);
  }
}
template <uint ROWS>
static inline void put_rows(thread const RowShare<ROWS>& share, threadgroup bfloat* tile, uint tid) {
  UNROLL for (uint i = 0; i < ROWS * 8 / TILE_THREADS; i++) {
    const uint r = tid / 8 + i * (TILE_THREADS / 8);
    *(threadgroup uint4*)(tile + r * TILE_STRIDE(bfloat) + tid % 8 * 8) = share.pieces[i];
  }
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
      chunk.scale = exists ? float(scales[group]) : 0.0f;
      chunk.bias = exists ? float(biases[group]) : 0.0f;
    }
  }
}
template <uint FORMAT, uint OUTPUTS>
static inline void put_codes(thread const CodeShare<OUTPUTS>& share, threadgroup bfloat* tile, uint tid) {
  const uint threads = TILE_THREADS / OUTPUTS;
  threadgroup bfloat* to = tile + tid / threads * TILE_STRIDE(bfloat) + tid % threads * (OUTPUTS / 2);
  UNROLL for (uint i = 0; i < OUTPUTS / 32; i++) {
    const uint4 w = share.chunks[i].codes;
    const float4 bias = float4(share.chunks[i].bias);
    // Codes are masked, not shifted; their scales make up for it, exactly.
    const float4 scale = share.chunks[i].scale * (FORMAT == AFFINE_4 ? float4(1.0f, 0.0625f, 0.00390625f, 0.000244140625f)
                                                                     : float4(1.0f));
    if (FORMAT == AFFINE_4) {
      put8(to + 16 * i, fma(codes_4(w.x), scale, bias), fma(codes_4(w.x >> 16), scale, bias));
      put8(to + 16 * i + 8, fma(codes_4(w.y), scale, bias), fma(codes_4(w.y >> 16), scale, bias));
    } else {
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
    UNROLL for (uint i = 0; i < FM; i++) {
      if (8 * i >= rows) break;
      simdgroup_matrix<T, 8, 8> a;
      simdgroup_load(a, x + 8 * i * TILE_STRIDE(T) + k, TILE_STRIDE(T));
      UNROLL for (uint j = 0; j < FN; j++) simdgroup_multiply_accumulate(acc[i * FN + j], a, b[j], acc[i * FN + j]);
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

// acc = the tile's ROWS rows, named by source[], times its OUTPUTS outputs, spread over the simdgroups: 8 FM rows from m,
// of which those before `rows` are wanted, by 8 FN outputs from n. Leaves memory free to use after a barrier.
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
    fetch_rows<ROWS>(x, source, columns, 0, tid, row_share);
    fetch_codes<FORMAT, OUTPUTS>(codes, scales, biases, base, first, outputs, columns, group_size, 0, tid, code_share);
  }
  for (uint k = 0; k < columns; k += TILE_COLUMNS(T)) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (has_codes) {
      put_rows<ROWS>(row_share, (threadgroup bfloat*)xs, tid);
      put_codes<FORMAT, OUTPUTS>(code_share, (threadgroup bfloat*)ws, tid);
    } else {
      stage_rows<T, ROWS>(x, source, xs, columns, k, tid);
      stage_values<T, OUTPUTS>(codes, ws, base, first, outputs, columns, k, tid);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint next = k + TILE_COLUMNS(T);
    if (has_codes && next < columns) {
      fetch_rows<ROWS>(x, source, columns, next, tid, row_share);
      fetch_codes<FORMAT, OUTPUTS>(codes, scales, biases, base, first, outputs, columns, group_size, next, tid,
                                   code_share);
    }
    multiply_tiles<T, FM, FN>(xs + m * TILE_STRIDE(T), ws + n * TILE_STRIDE(T), rows, acc);
  }
}

// Eight neighbouring results of a row of `outputs`, as far as they exist.
template <typename T>
static inline void write8(device T* out, ulong row, uint output, uint outputs, float4 low, float4 high) {
  device T* to = out + row * outputs + output;
  if (outputs % 8 == 0) {
    if (output < outputs) put8(to, low, high);
  } else {
    for (uint j = 0; j < 8 && output + j < outputs; j++) to[j] = T(j < 4 ? low[j] : high[j - 4]);
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
