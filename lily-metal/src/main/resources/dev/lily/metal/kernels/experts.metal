constant constexpr uint MAX_EXPERTS = 1024;
constant constexpr uint MAX_PER_TOKEN = 32;

// The `per_token` largest logits of a row, largest first, the lower index first among equals, in threadgroup memory. Each
// simdgroup lists the first ones of 32 experts at a time; a listed expert's rank is the number of listed ones before it.
// Logits that are NaN count as the smallest. 256 threads, barriers inside.
struct Chosen {
  uint experts[MAX_PER_TOKEN];
  float logits[MAX_PER_TOKEN];
};
static inline void choose_experts(device const float* row, uint experts, uint per_token, threadgroup float* listed,
                                  threadgroup ushort* listed_experts, threadgroup Chosen& chosen, uint tid, uint lane,
                                  uint sg) {
  const uint blocks = (experts + SIMD - 1) / SIMD;
  for (uint block = sg; block < blocks; block += 8) {
    const uint expert = block * SIMD + lane;
    const float logit = expert < experts ? row[expert] : -INFINITY, mine = isnan(logit) ? -INFINITY : logit;
    uint rank = 0;
    for (uint l = 0; l < SIMD; l++) {
      const float other = simd_shuffle(mine, ushort(l));
      rank += other > mine || (other == mine && l < lane) ? 1u : 0u;
    }
    if (rank < per_token) {
      listed[block * per_token + rank] = mine;
      listed_experts[block * per_token + rank] = ushort(expert);
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = tid; i < blocks * per_token; i += 256) {
    const float mine = listed[i];
    uint rank = 0;
    for (uint j = 0; j < blocks * per_token; j++) {
      const float other = listed[j];
      rank += other > mine || (other == mine && j < i) ? 1u : 0u;
    }
    if (rank < per_token) {
      chosen.experts[rank] = listed_experts[i];
      chosen.logits[rank] = mine;
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
}

// Softmax over the chosen ones, which is the renormalised softmax over all.
static inline float expert_weight(threadgroup const Chosen& chosen, uint per_token, uint rank) {
  float sum = 0.0f;
  for (uint i = 0; i < per_token; i++) sum += precise::exp(chosen.logits[i] - chosen.logits[0]);
  return precise::exp(chosen.logits[rank] - chosen.logits[0]) / sum;
}

// ---------------------------------------------------------------------------------------------------------------
// Decode

struct ExpertsParams {
  uint hidden;
  uint intermediate;
  uint shared_intermediate;
  uint experts;
  uint per_token;
  uint group_size;    // of all stacks
  uint gate_rows;     // rows of the gate stack from one expert to the next, `intermediate` if they are contiguous
  uint up_rows;
  uint down_rows;
};

// Gate and up outputs [first, first + OUTPUTS) of one expert, and SwiGLU.
template <uint FORMAT, uint OUTPUTS>
static inline void expand(device const uint* gate_codes, device const bfloat* gate_scales,
                          device const bfloat* gate_biases, device const uint* up_codes,
                          device const bfloat* up_scales, device const bfloat* up_biases, uint gate_base, uint up_base,
                          RowShape shape, uint first, uint outputs, uint columns, threadgroup const bfloat* x,
                          uint plane, threadgroup const float* sums, uint lane, device bfloat* out) {
  uint gate_rows[OUTPUTS], up_rows[OUTPUTS];
  float gate[OUTPUTS], up[OUTPUTS];
  for (uint o = 0; o < OUTPUTS; o++) {
    gate_rows[o] = gate_base + min(first + o, outputs - 1);
    up_rows[o] = up_base + min(first + o, outputs - 1);
    gate[o] = up[o] = 0.0f;
  }
  if (FORMAT == AFFINE_4 || FORMAT == AFFINE_8) {
    Chunk next_gate[OUTPUTS], next_up[OUTPUTS];
    if (lane < shape.chunks) {
      load_chunks<FORMAT, OUTPUTS>(gate_codes, gate_scales, gate_biases, shape, gate_rows, lane, next_gate);
      load_chunks<FORMAT, OUTPUTS>(up_codes, up_scales, up_biases, shape, up_rows, lane, next_up);
    }
    for (uint chunk = lane; chunk < shape.chunks; chunk += SIMD) {
      Chunk g[OUTPUTS], u[OUTPUTS];
      for (uint o = 0; o < OUTPUTS; o++) {
        g[o] = next_gate[o];
        u[o] = next_up[o];
      }
      if (chunk + SIMD < shape.chunks) {
        load_chunks<FORMAT, OUTPUTS>(gate_codes, gate_scales, gate_biases, shape, gate_rows, chunk + SIMD, next_gate);
        load_chunks<FORMAT, OUTPUTS>(up_codes, up_scales, up_biases, shape, up_rows, chunk + SIMD, next_up);
      }
      for (uint o = 0; o < OUTPUTS; o++) {
        gate[o] = add_chunk<FORMAT>(g[o], shape.exponent, x + chunk * PIECE, plane, sums[chunk], gate[o]);
        up[o] = add_chunk<FORMAT>(u[o], shape.exponent, x + chunk * PIECE, plane, sums[chunk], up[o]);
      }
    }
  } else {
    for (uint c = lane * CHUNK; c < columns; c += STRIDE)
      for (uint o = 0; o < OUTPUTS; o++) {
        gate[o] = add_dense<FORMAT>(gate_codes, gate_rows[o], c, columns, x + c / 2, plane, gate[o]);
        up[o] = add_dense<FORMAT>(up_codes, up_rows[o], c, columns, x + c / 2, plane, up[o]);
      }
  }
  for (uint o = 0; o < OUTPUTS; o++) {
    const float g = simd_sum(gate[o]), u = simd_sum(up[o]);
    if (lane == 0 && first + o < outputs) out[first + o] = bfloat(silu(g) * u);
  }
}

constant constexpr uint EXPAND_COLUMNS = 4096;  // most columns of experts_expand

// Gate, up and SwiGLU of the chosen experts and of the shared one. Each threadgroup routes its row itself.
// logits [rows, experts] fp32; n [rows, hidden] bf16; gate, up: stacks; shared gate, up: matrices, all of one format;
// act [rows, per_token * intermediate + shared_intermediate] bf16, the shared expert last;
// chosen, weights [rows, per_token]: written for experts_contract.
// Grid (ceil(max(intermediate, shared_intermediate) / (8 OUTPUTS)), per_token + 1, rows) of 256 threads.
// hidden at most 4096. 35B: 32 x 9 threadgroups.
#define EXPAND(NAME, FORMAT, OUTPUTS)                                                                           \
  [[max_total_threads_per_threadgroup(256)]] kernel void NAME(                                                 \
      device const uint* gate_codes [[buffer(0)]], device const bfloat* gate_scales [[buffer(1)]],             \
      device const bfloat* gate_biases [[buffer(2)]], device const uint* up_codes [[buffer(3)]],               \
      device const bfloat* up_scales [[buffer(4)]], device const bfloat* up_biases [[buffer(5)]],              \
      device const uint* shared_gate_codes [[buffer(6)]], device const bfloat* shared_gate_scales [[buffer(7)]], \
      device const bfloat* shared_gate_biases [[buffer(8)]], device const uint* shared_up_codes [[buffer(9)]], \
      device const bfloat* shared_up_scales [[buffer(10)]], device const bfloat* shared_up_biases [[buffer(11)]], \
      device const float* logits [[buffer(12)]], device const bfloat* n [[buffer(13)]],                        \
      device bfloat* act [[buffer(14)]], device uint* chosen_out [[buffer(15)]],                               \
      device float* weights_out [[buffer(16)]], constant ExpertsParams& p [[buffer(17)]],                      \
      uint3 group [[threadgroup_position_in_grid]], uint tid [[thread_index_in_threadgroup]],                  \
      uint lane [[thread_index_in_simdgroup]], uint sg [[simdgroup_index_in_threadgroup]]) {                   \
    threadgroup uint4 staged_x[EXPAND_COLUMNS / PIECE];                                                         \
    threadgroup float sums[EXPAND_COLUMNS / CHUNK];                                                             \
    threadgroup float listed[MAX_EXPERTS];                                                                      \
    threadgroup ushort listed_experts[MAX_EXPERTS];                                                             \
    threadgroup Chosen chosen;                                                                                  \
    threadgroup bfloat* xs = (threadgroup bfloat*)staged_x;                                                     \
    const bool shared = group.y == p.per_token;                                                                 \
    device const bfloat* x = n + ulong(group.z) * p.hidden;                                                     \
    const uint pieces = (p.hidden + CHUNK - 1) / CHUNK * 2;                                                     \
    for (uint i = 0; i < pieces; i += 256) {                                                                    \
      float v[PIECE];                                                                                           \
      load_piece(x, p.hidden, i + tid, p.hidden % PIECE == 0, v);                                               \
      stage_piece(FORMAT, v, i + tid, i + tid < pieces, EXPAND_COLUMNS / 2, xs, sums);                          \
    }                                                                                                           \
    if (!shared || group.x == 0)                                                                                \
      choose_experts(logits + ulong(group.z) * p.experts, p.experts, p.per_token, listed, listed_experts, chosen, \
                     tid, lane, sg);                                                                            \
    else                                                                                                        \
      threadgroup_barrier(mem_flags::mem_threadgroup);                                                          \
    if (group.x == 0 && shared && tid < p.per_token) {                                                          \
      chosen_out[group.z * p.per_token + tid] = chosen.experts[tid];                                            \
      weights_out[group.z * p.per_token + tid] = expert_weight(chosen, p.per_token, tid);                       \
    }                                                                                                           \
    const uint first = (group.x * MATVEC_SIMDGROUPS + sg) * OUTPUTS;                                            \
    const RowShape shape = row_shape(FORMAT, p.hidden, p.group_size);                                           \
    device bfloat* out = act + ulong(group.z) * (p.per_token * p.intermediate + p.shared_intermediate) +        \
                         group.y * p.intermediate;                                                              \
    if (shared) {                                                                                               \
      if (first < p.shared_intermediate)                                                                        \
        expand<FORMAT, OUTPUTS>(shared_gate_codes, shared_gate_scales, shared_gate_biases, shared_up_codes,     \
                                shared_up_scales, shared_up_biases, 0, 0, shape, first, p.shared_intermediate,  \
                                p.hidden, xs, EXPAND_COLUMNS / 2, sums, lane, out);                             \
    } else if (first < p.intermediate) {                                                                        \
      const uint expert = chosen.experts[group.y];                                                              \
      expand<FORMAT, OUTPUTS>(gate_codes, gate_scales, gate_biases, up_codes, up_scales, up_biases,             \
                              expert * p.gate_rows, expert * p.up_rows, shape, first, p.intermediate, p.hidden, xs, \
                              EXPAND_COLUMNS / 2, sums, lane, out);                                             \
    }                                                                                                           \
  }
EXPAND(experts_expand_q4, AFFINE_4, 2)
EXPAND(experts_expand_q8, AFFINE_8, 2)
EXPAND(experts_expand_bf16, DENSE_BF16, 2)
EXPAND(experts_expand_f32, DENSE_F32, 2)

// A chunk of OUTPUTS rows of each of COUNT experts, from rank `slot` on: fetched together, since one expert's rows are too
// short to keep memory busy. base: lane l's is the first row of the l-th expert.
template <uint FORMAT, uint OUTPUTS, uint COUNT>
static inline void load_experts(device const uint* codes, device const bfloat* scales, device const bfloat* biases,
                                RowShape shape, uint base, uint slot, uint per_token, thread const uint* rows, uint chunk,
                                thread Chunk* w) {
  const uint group = group_of(shape, chunk);
  for (uint i = 0; i < COUNT; i++) {
    const uint first = simd_shuffle(base, ushort(min(slot + i, per_token - 1)));
    if (chunk >= shape.chunks) continue;
    for (uint o = 0; o < OUTPUTS; o++)
      w[i * OUTPUTS + o] = load_chunk<FORMAT>(codes, scales, biases, shape, first + rows[o], chunk, group);
  }
}

// out = sum over the chosen experts, in rank order, of weight * down * act, then sigmoid(shared gate) * shared down * act,
// 512 columns at a time.
// down: stack; shared down: matrix, of one format; act, chosen, weights from experts_expand; shared_gate [rows] fp32;
// out [rows, hidden] bf16. Threadgroup memory: 2 1/4 bytes for each of per_token * intermediate +
// shared_intermediate values, each expert's part rounded up to 16 values, the whole to 16 bytes.
// Grid (ceil(hidden / (8 OUTPUTS)), rows) of 256 threads.
#define CONTRACT(NAME, FORMAT, OUTPUTS, EXPERTS)                                                                     \
  [[max_total_threads_per_threadgroup(256)]] kernel void NAME(                                                 \
      device const uint* codes [[buffer(0)]], device const bfloat* scales [[buffer(1)]],                       \
      device const bfloat* biases [[buffer(2)]], device const uint* shared_codes [[buffer(3)]],                \
      device const bfloat* shared_scales [[buffer(4)]], device const bfloat* shared_biases [[buffer(5)]],      \
      device const bfloat* act [[buffer(6)]], device const uint* chosen [[buffer(7)]],                         \
      device const float* weights [[buffer(8)]], device const float* shared_gate [[buffer(9)]],                \
      device bfloat* out [[buffer(10)]], constant ExpertsParams& p [[buffer(11)]],                             \
      threadgroup uint4* block [[threadgroup(0)]], uint2 group [[threadgroup_position_in_grid]],                 \
      uint tid [[thread_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]],                       \
      uint sg [[simdgroup_index_in_threadgroup]]) {                                                            \
    const uint padded = (p.intermediate + CHUNK - 1) / CHUNK * CHUNK;                                           \
    const uint shared_padded = (p.shared_intermediate + CHUNK - 1) / CHUNK * CHUNK;                             \
    const uint total_padded = p.per_token * padded + shared_padded;                                             \
    threadgroup bfloat* xs = (threadgroup bfloat*)block;                                                        \
    threadgroup float* sums = (threadgroup float*)(xs + total_padded);                                          \
    const uint first = (group.x * MATVEC_SIMDGROUPS + sg) * OUTPUTS;                                            \
    const RowShape shape = row_shape(FORMAT, p.intermediate, p.group_size);                                     \
    const RowShape shared_shape = row_shape(FORMAT, p.shared_intermediate, p.group_size);                       \
    uint rows[OUTPUTS];                                                                                         \
    for (uint o = 0; o < OUTPUTS; o++) rows[o] = min(first + o, p.hidden - 1);                                  \
    /* Lane l keeps the l-th expert's first row and weight. */                                                  \
    const uint mine = group.y * p.per_token + min(lane, p.per_token - 1);                                       \
    const uint base = chosen[mine] * p.down_rows;                                                               \
    const float weight = weights[mine], shared_weight = sigmoid(shared_gate[group.y]);                          \
    constexpr bool IS_AFFINE = FORMAT == AFFINE_4 || FORMAT == AFFINE_8;                                        \
    Chunk next[EXPERTS * OUTPUTS];                                                                              \
    if (IS_AFFINE)                                                                                              \
      load_experts<FORMAT, OUTPUTS, EXPERTS>(codes, scales, biases, shape, base, 0, p.per_token, rows, lane, next); \
    device const bfloat* x = act + ulong(group.y) * (p.per_token * p.intermediate + p.shared_intermediate);     \
    for (uint i0 = 0; i0 < total_padded / PIECE; i0 += 256) {                                                   \
      const uint i = i0 + tid, slot = min(i / (padded / PIECE), p.per_token), piece = i - slot * (padded / PIECE); \
      const bool is_shared = slot == p.per_token;                                                               \
      float v[PIECE];                                                                                           \
      load_piece(x + slot * p.intermediate, is_shared ? p.shared_intermediate : p.intermediate, piece,          \
                 p.intermediate % PIECE == 0 && p.shared_intermediate % PIECE == 0, v);                         \
      stage_piece(FORMAT, v, piece, i < total_padded / PIECE, (is_shared ? shared_padded : padded) / 2,         \
                  xs + slot * padded, sums + slot * padded / CHUNK);                                            \
    }                                                                                                           \
    threadgroup_barrier(mem_flags::mem_threadgroup);                                                            \
    if (first >= p.hidden) return;                                                                              \
    float total[OUTPUTS];                                                                                       \
    for (uint o = 0; o < OUTPUTS; o++) total[o] = 0.0f;                                                         \
    for (uint c0 = 0; c0 < p.intermediate; c0 += STRIDE) {                                                      \
      const uint chunk = c0 / CHUNK + lane;                                                                     \
      for (uint slot = 0; slot < p.per_token; slot += EXPERTS) {                                                \
        Chunk w[EXPERTS * OUTPUTS];                                                                             \
        if (IS_AFFINE) {                                                                                        \
          for (uint i = 0; i < EXPERTS * OUTPUTS; i++) w[i] = next[i];                                          \
          const bool is_last = slot + EXPERTS >= p.per_token;                                                   \
          load_experts<FORMAT, OUTPUTS, EXPERTS>(codes, scales, biases, shape, base, is_last ? 0u : slot + EXPERTS, \
                                                 p.per_token, rows, is_last ? chunk + SIMD : chunk, next);      \
        }                                                                                                       \
        for (uint i = 0; i < EXPERTS; i++) {                                                                    \
          if (slot + i >= p.per_token) break;                                                                   \
          const uint expert_base = simd_shuffle(base, ushort(slot + i));                                        \
          const float share = simd_shuffle(weight, ushort(slot + i));                                           \
          const uint at = (slot + i) * padded;                                                                  \
          if (IS_AFFINE && chunk >= shape.chunks) continue;                                                     \
          for (uint o = 0; o < OUTPUTS; o++) {                                                                  \
            const float part =                                                                                  \
                IS_AFFINE ? add_chunk<FORMAT>(w[i * OUTPUTS + o], shape.exponent, xs + at + chunk * PIECE, padded / 2, \
                                              sums[at / CHUNK + chunk], 0.0f)                                   \
                          : add_dense<FORMAT>(codes, ulong(expert_base) + rows[o], chunk * CHUNK, p.intermediate, \
                                              xs + at + chunk * PIECE, padded / 2, 0.0f);                       \
            total[o] = fma(share, part, total[o]);                                                              \
          }                                                                                                     \
        }                                                                                                       \
      }                                                                                                         \
    }                                                                                                           \
    const uint shared_at = p.per_token * padded;                                                                \
    for (uint c0 = 0; c0 < p.shared_intermediate; c0 += STRIDE) {                                               \
      const uint chunk = c0 / CHUNK + lane;                                                                     \
      if (IS_AFFINE && chunk >= shared_shape.chunks) continue;                                                  \
      for (uint o = 0; o < OUTPUTS; o++) {                                                                      \
        const float part =                                                                                      \
            IS_AFFINE ? add_chunk<FORMAT>(load_chunk<FORMAT>(shared_codes, shared_scales, shared_biases, shared_shape, \
                                                             rows[o], chunk, group_of(shared_shape, chunk)), shape.exponent, \
                                          xs + shared_at + chunk * PIECE, shared_padded / 2,                    \
                                          sums[shared_at / CHUNK + chunk], 0.0f)                                \
                      : add_dense<FORMAT>(shared_codes, rows[o], chunk * CHUNK, p.shared_intermediate,          \
                                          xs + shared_at + chunk * PIECE, shared_padded / 2, 0.0f);             \
        total[o] = fma(shared_weight, part, total[o]);                                                          \
      }                                                                                                         \
    }                                                                                                           \
    for (uint o = 0; o < OUTPUTS; o++) {                                                                        \
      const float s = simd_sum(total[o]);                                           \
      if (lane == 0 && first + o < p.hidden) out[ulong(group.y) * p.hidden + first + o] = bfloat(s);            \
    }                                                                                                           \
  }
CONTRACT(experts_contract_q4, AFFINE_4, 2, 2)
CONTRACT(experts_contract_q8, AFFINE_8, 2, 2)
CONTRACT(experts_contract_bf16, DENSE_BF16, 2, 2)
CONTRACT(experts_contract_f32, DENSE_F32, 2, 2)

// ---------------------------------------------------------------------------------------------------------------
// Prefill. An assignment is one (row, rank), numbered row * per_token + rank.

struct RouteParams {
  uint experts;
  uint per_token;
  uint assignments;
};

// Chosen experts and weights of every row. logits [rows, experts] fp32; chosen, weights [rows, per_token].
// One threadgroup of 256 threads per row; at most 1024 experts and 32 per token.
[[max_total_threads_per_threadgroup(256)]] kernel void experts_route(device const float* logits [[buffer(0)]],
                                                                     device uint* chosen_out [[buffer(1)]],
                                                                     device float* weights_out [[buffer(2)]],
                                                                     constant RouteParams& p [[buffer(3)]],
                                                                     uint row [[threadgroup_position_in_grid]],
                                                                     uint tid [[thread_index_in_threadgroup]],
                                                                     uint lane [[thread_index_in_simdgroup]],
                                                                     uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup float listed[MAX_EXPERTS];
  threadgroup ushort listed_experts[MAX_EXPERTS];
  threadgroup Chosen chosen;
  choose_experts(logits + ulong(row) * p.experts, p.experts, p.per_token, listed, listed_experts, chosen, tid, lane, sg);
  if (tid < p.per_token) {
    chosen_out[row * p.per_token + tid] = chosen.experts[tid];
    weights_out[row * p.per_token + tid] = expert_weight(chosen, p.per_token, tid);
  }
}

// Groups the assignments by expert: histogram, prefix sums, scatter. chosen [assignments]; offsets [experts + 1]: where
// each expert's assignments begin in order [assignments]; tiles [experts + 1]: the same in tiles of 64 assignments.
// Within an expert the order is unspecified, and no result depends on it. One threadgroup of 1024 threads.
[[max_total_threads_per_threadgroup(1024)]] kernel void experts_group(device const uint* chosen [[buffer(0)]],
                                                                      device uint* offsets [[buffer(1)]],
                                                                      device uint* tiles [[buffer(2)]],
                                                                      device uint* order [[buffer(3)]],
                                                                      constant RouteParams& p [[buffer(4)]],
                                                                      uint tid [[thread_index_in_threadgroup]],
                                                                      uint lane [[thread_index_in_simdgroup]],
                                                                      uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup atomic_uint counts[MAX_EXPERTS];
  threadgroup uint sums[SIMD];
  threadgroup uint tile_sums[SIMD];
  atomic_store_explicit(&counts[tid], 0u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = tid; i < p.assignments; i += 1024) atomic_fetch_add_explicit(&counts[chosen[i]], 1u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const uint count = atomic_load_explicit(&counts[tid], memory_order_relaxed);
  const uint count_tiles = (count + EXPERT_TILE_ROWS - 1) / EXPERT_TILE_ROWS;
  const uint before = simd_prefix_exclusive_sum(count);
  const uint tiles_before = simd_prefix_exclusive_sum(count_tiles);
  if (lane == SIMD - 1) {
    sums[sg] = before + count;
    tile_sums[sg] = tiles_before + count_tiles;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const uint base = simd_prefix_exclusive_sum(sums[lane]);
  const uint tile_base = simd_prefix_exclusive_sum(tile_sums[lane]);
  const uint offset = simd_shuffle(base, ushort(sg)) + before;
  const uint tile = simd_shuffle(tile_base, ushort(sg)) + tiles_before;
  if (tid < p.experts) {
    offsets[tid] = offset;
    tiles[tid] = tile;
    if (tid + 1 == p.experts) {
      offsets[p.experts] = offset + count;
      tiles[p.experts] = tile + count_tiles;
    }
  }
  atomic_store_explicit(&counts[tid], offset, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = tid; i < p.assignments; i += 1024)
    order[atomic_fetch_add_explicit(&counts[chosen[i]], 1u, memory_order_relaxed)] = i;
}

// Gate, up and SwiGLU: act[i] of the i-th assignment in order. gate, up: stacks; x [rows, columns] bf16;
// act [assignments, outputs] bf16. Tiles of 64 assignments by 32 outputs of gate and of up; a simdgroup takes 8 outputs
// of each and of the assignments no more than there are, in steps of 8.
// Grid (ceil(outputs / 32), most tiles) of 128 threads; the most tiles are ceil(assignments / 64) + min(experts,
// assignments), or ceil(rows / 64) for one expert.
template <uint FORMAT, typename T>
static inline void expand_tile(device const uint* gate_codes, device const bfloat* gate_scales,
                               device const bfloat* gate_biases, device const uint* up_codes,
                               device const bfloat* up_scales, device const bfloat* up_biases, ulong gate_base,
                               ulong up_base, uint first, device const bfloat* x, threadgroup const uint* source,
                               constant ExpertTileParams& p, uint count, threadgroup uint4* memory, uint tid, uint sg,
                               thread simdgroup_matrix<float, 8, 8>* gate, thread simdgroup_matrix<float, 8, 8>* up) {
  threadgroup T* xs = (threadgroup T*)memory;
  threadgroup T* ws = xs + EXPERT_TILE_ROWS * TILE_STRIDE(T);
  threadgroup T* us = ws + 32 * TILE_STRIDE(T);
  UNROLL for (uint i = 0; i < 8; i++) gate[i] = up[i] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  RowShare<EXPERT_TILE_ROWS> row_share;
  CodeShare<32> gate_share, up_share;
  const bool has_codes = FORMAT == AFFINE_4 || FORMAT == AFFINE_8;
  if (has_codes) {
    fetch_rows<EXPERT_TILE_ROWS>(x, source, count, p.columns, 0, tid, row_share);
    fetch_codes<FORMAT, 32>(gate_codes, gate_scales, gate_biases, gate_base, first, p.outputs, p.columns, p.group_size,
                            0, tid, gate_share);
    fetch_codes<FORMAT, 32>(up_codes, up_scales, up_biases, up_base, first, p.outputs, p.columns, p.group_size, 0, tid,
                            up_share);
  }
  for (uint k = 0; k < p.columns; k += TILE_COLUMNS(T)) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (has_codes) {
      put_rows<EXPERT_TILE_ROWS>(row_share, count, (threadgroup bfloat*)xs, tid);
      put_codes<FORMAT, 32>(gate_share, (threadgroup bfloat*)ws, tid);
      put_codes<FORMAT, 32>(up_share, (threadgroup bfloat*)us, tid);
    } else {
      stage_rows<T, EXPERT_TILE_ROWS>(x, source, xs, p.columns, k, tid);
      stage_values<T, 32>(gate_codes, ws, gate_base, first, p.outputs, p.columns, k, tid);
      stage_values<T, 32>(up_codes, us, up_base, first, p.outputs, p.columns, k, tid);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint next = k + TILE_COLUMNS(T);
    if (has_codes && next < p.columns) {
      fetch_rows<EXPERT_TILE_ROWS>(x, source, count, p.columns, next, tid, row_share);
      fetch_codes<FORMAT, 32>(gate_codes, gate_scales, gate_biases, gate_base, first, p.outputs, p.columns,
                              p.group_size, next, tid, gate_share);
      fetch_codes<FORMAT, 32>(up_codes, up_scales, up_biases, up_base, first, p.outputs, p.columns, p.group_size, next,
                              tid, up_share);
    }
    for (uint c = 0; c < TILE_COLUMNS(T); c += 8) {
      simdgroup_matrix<T, 8, 8> a, g, u;
      simdgroup_load(g, ws + 8 * sg * TILE_STRIDE(T) + c, TILE_STRIDE(T), ulong2(0, 0), true);
      simdgroup_load(u, us + 8 * sg * TILE_STRIDE(T) + c, TILE_STRIDE(T), ulong2(0, 0), true);
      UNROLL for (uint i = 0; i < 8; i++) {
        if (8 * i < count) {
          simdgroup_load(a, xs + 8 * i * TILE_STRIDE(T) + c, TILE_STRIDE(T));
          simdgroup_multiply_accumulate(gate[i], a, g, gate[i]);
          simdgroup_multiply_accumulate(up[i], a, u, up[i]);
        }
      }
    }
  }
}

#define EXPAND_TILES(NAME, FORMAT, W)                                                                           \
  [[max_total_threads_per_threadgroup(128)]] kernel void NAME(                                                 \
      device const uint* gate_codes [[buffer(0)]], device const bfloat* gate_scales [[buffer(1)]],             \
      device const bfloat* gate_biases [[buffer(2)]], device const uint* up_codes [[buffer(3)]],               \
      device const bfloat* up_scales [[buffer(4)]], device const bfloat* up_biases [[buffer(5)]],              \
      device const bfloat* x [[buffer(6)]], device const uint* offsets [[buffer(7)]],                          \
      device const uint* tiles [[buffer(8)]], device const uint* order [[buffer(9)]],                          \
      device bfloat* act [[buffer(10)]], constant ExpertTileParams& p [[buffer(11)]],                          \
      uint2 group [[threadgroup_position_in_grid]], uint tid [[thread_index_in_threadgroup]],                  \
      uint sg [[simdgroup_index_in_threadgroup]]) {                                                            \
    threadgroup uint4 memory[TILE_WORDS(EXPERT_TILE_ROWS + 64)];                                               \
    threadgroup uint source[EXPERT_TILE_ROWS];                                                                 \
    uint first, count;                                                                                         \
    const ulong expert = tile_expert(offsets, tiles, p, group.y, first, count);                                \
    if (count == 0) return;                                                                                    \
    if (tid < EXPERT_TILE_ROWS)                                                                                \
      source[tid] = tid >= count ? NO_ROW : p.experts == 0 ? first + tid : order[first + tid] / p.per_token;   \
    threadgroup_barrier(mem_flags::mem_threadgroup);                                                           \
    simdgroup_matrix<float, 8, 8> gate[8], up[8];                                                              \
    expand_tile<FORMAT, W>(gate_codes, gate_scales, gate_biases, up_codes, up_scales, up_biases,               \
                           expert * p.gate_rows, expert * p.up_rows, group.x * 32, x, source, p, count, memory, \
                           tid, sg, gate, up);                                                                 \
    threadgroup_barrier(mem_flags::mem_threadgroup);                                                           \
    threadgroup float* gates = (threadgroup float*)memory;                                                     \
    threadgroup float* ups = gates + EXPERT_TILE_ROWS * 36;                                                    \
    put_sums<8, 1>(gate, gates + 8 * sg, 36);                                                                  \
    put_sums<8, 1>(up, ups + 8 * sg, 36);                                                                      \
    threadgroup_barrier(mem_flags::mem_threadgroup);                                                           \
    for (uint i = tid; i < count * 4; i += TILE_THREADS) {                                                     \
      const uint r = i / 4, c = i % 4 * 8;                                                                     \
      const float4 low = swiglu(get4(gates + r * 36 + c), get4(ups + r * 36 + c));                             \
      const float4 high = swiglu(get4(gates + r * 36 + c + 4), get4(ups + r * 36 + c + 4));                    \
      write8(act, first + r, group.x * 32 + c, p.outputs, low, high);                                          \
    }                                                                                                          \
  }
static inline float4 swiglu(float4 gate, float4 up) {
  return float4(silu(gate.x) * up.x, silu(gate.y) * up.y, silu(gate.z) * up.z, silu(gate.w) * up.w);
}
EXPAND_TILES(experts_expand_tiles_q4, AFFINE_4, bfloat)
EXPAND_TILES(experts_expand_tiles_q8, AFFINE_8, bfloat)
EXPAND_TILES(experts_expand_tiles_bf16, DENSE_BF16, bfloat)
EXPAND_TILES(experts_expand_tiles_f32, DENSE_F32, float)

// down * act: contributions[a] of assignment a. down: stack (rows from one expert to the next: gate_rows);
// act [assignments in order, columns] bf16; contributions [assignments, outputs] bf16.
// Tiles of 64 assignments by 64 outputs; a simdgroup takes 16 outputs. Grid (ceil(outputs / 64), most tiles) of 128.
#define CONTRACT_TILES(NAME, FORMAT, W)                                                                         \
  [[max_total_threads_per_threadgroup(128)]] kernel void NAME(                                                 \
      device const uint* codes [[buffer(0)]], device const bfloat* scales [[buffer(1)]],                       \
      device const bfloat* biases [[buffer(2)]], device const bfloat* act [[buffer(3)]],                       \
      device const uint* offsets [[buffer(4)]], device const uint* tiles [[buffer(5)]],                        \
      device const uint* order [[buffer(6)]], device bfloat* contributions [[buffer(7)]],                      \
      constant ExpertTileParams& p [[buffer(8)]], uint2 group [[threadgroup_position_in_grid]],                \
      uint tid [[thread_index_in_threadgroup]], uint sg [[simdgroup_index_in_threadgroup]]) {                  \
    threadgroup uint4 memory[TILE_WORDS(EXPERT_TILE_ROWS + 64)];                                               \
    threadgroup uint source[EXPERT_TILE_ROWS];                                                                 \
    uint first, count;                                                                                         \
    const ulong expert = tile_expert(offsets, tiles, p, group.y, first, count);                                \
    if (count == 0) return;                                                                                    \
    if (tid < EXPERT_TILE_ROWS) source[tid] = tid < count ? first + tid : NO_ROW;                              \
    threadgroup_barrier(mem_flags::mem_threadgroup);                                                           \
    simdgroup_matrix<float, 8, 8> acc[16];                                                                     \
    multiply_matrix<FORMAT, W, EXPERT_TILE_ROWS, 64, 8, 2>(                                                    \
        codes, scales, biases, expert * p.gate_rows, group.x * 64, p.outputs, act, source, p.columns,          \
        p.group_size, count, 0, 16 * sg, memory, tid, acc);                                                    \
    threadgroup_barrier(mem_flags::mem_threadgroup);                                                           \
    threadgroup float* sums = (threadgroup float*)memory;                                                      \
    put_sums<8, 2>(acc, sums + 16 * sg, 68);                                                                   \
    threadgroup_barrier(mem_flags::mem_threadgroup);                                                           \
    for (uint i = tid; i < count * 8; i += TILE_THREADS) {                                                     \
      const uint r = i / 8, c = i % 8 * 8;                                                                     \
      const uint to = p.experts == 0 ? first + r : order[first + r];                                           \
      write8(contributions, to, group.x * 64 + c, p.outputs, get4(sums + r * 68 + c), get4(sums + r * 68 + c + 4)); \
    }                                                                                                          \
  }
CONTRACT_TILES(experts_contract_tiles_q4, AFFINE_4, bfloat)
CONTRACT_TILES(experts_contract_tiles_q8, AFFINE_8, bfloat)
CONTRACT_TILES(experts_contract_tiles_bf16, DENSE_BF16, bfloat)
CONTRACT_TILES(experts_contract_tiles_f32, DENSE_F32, float)

struct CombineParams {
  uint hidden;
  uint per_token;
};

// out = sum over ranks of weight * contribution, then sigmoid(shared gate) * shared. contributions [rows, per_token,
// hidden] bf16; weights [rows, per_token]; shared [rows, hidden] bf16; shared_gate [rows] fp32; out [rows, hidden] bf16.
// Grid (ceil(hidden / 256), rows) of 256 threads.
kernel void experts_combine(device const bfloat* contributions [[buffer(0)]], device const float* weights [[buffer(1)]],
                            device const bfloat* shared [[buffer(2)]], device const float* shared_gate [[buffer(3)]],
                            device bfloat* out [[buffer(4)]], constant CombineParams& p [[buffer(5)]],
                            uint2 position [[thread_position_in_grid]]) {
  if (position.x >= p.hidden) return;
  float sum = 0.0f;
  for (uint rank = 0; rank < p.per_token; rank++) {
    const uint a = position.y * p.per_token + rank;
    sum = fma(weights[a], float(contributions[ulong(a) * p.hidden + position.x]), sum);
  }
  const ulong at = ulong(position.y) * p.hidden + position.x;
  out[at] = bfloat(fma(sigmoid(shared_gate[position.y]), float(shared[at]), sum));
}
