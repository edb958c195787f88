// Prefill attention by the tensor operations of Metal 4: attention_prefill of attention.metal with the same arguments and
// grid, and other bits. Takes heads of DIM dimensions and pages of whole 32 tokens, whose keys and values it reads where
// they lie.

constant constexpr uint TENSOR_VECTORS = 32;  // query vectors of a threadgroup
constant constexpr uint TENSOR_TOKENS = 64;   // of a tile, counted from the sequence's start
constant constexpr uint TENSOR_SCORES = TENSOR_TOKENS + 4;

// Causal, online softmax. Of a tile, a simdgroup makes the scores of 16 tokens; four neighbouring threads weigh a vector's
// tokens; then a simdgroup adds the values' dimensions that are its own.
#define ATTENTION_TENSOR(NAME, DIM)                                                                                 \
  [[max_total_threads_per_threadgroup(128)]] kernel void NAME(                                                      \
      device const bfloat* query [[buffer(0)]], device const bfloat* query_gate [[buffer(1)]],                      \
      device const Sequence* sequences [[buffer(2)]], device const uint* tables [[buffer(3)]],                      \
      device const bfloat* pages [[buffer(4)]], device bfloat* y [[buffer(5)]],                                     \
      constant AttentionParams& p [[buffer(6)]], uint3 group [[threadgroup_position_in_grid]],                      \
      uint3 grid [[threadgroups_per_grid]],                                                                         \
      uint tid [[thread_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]],                            \
      uint sg [[simdgroup_index_in_threadgroup]]) {                                                                 \
    threadgroup uint4 memory[TILE_WORDS(TENSOR_VECTORS)];                                                           \
    threadgroup float scores[TENSOR_VECTORS * TENSOR_SCORES];                                                       \
    threadgroup float factors[TENSOR_VECTORS];                                                                      \
    threadgroup bfloat* weights = (threadgroup bfloat*)memory;                                                      \
    const uint packed = p.heads / p.kv_heads, head = group.y, mine = DIM / 4 * sg;                                  \
    const uint first_row = sequences[group.z].first_row, total = sequences[group.z].num_rows * packed;              \
    const uint vector0 = (grid.x - 1 - group.x) * TENSOR_VECTORS; /* the longest first */                           \
    if (vector0 >= total) return;                                                                                   \
    const uint vectors = min(TENSOR_VECTORS, total - vector0), position0 = sequences[group.z].position;             \
    const uint last = position0 + (vector0 + vectors - 1) / packed;                                                 \
    device const uint* table = tables + ulong(group.z) * p.max_pages;                                               \
    DeviceRows q = device_rows(query + ((ulong(head) * p.rows + first_row) * packed + vector0) * DIM, DIM, vectors);\
    TileRows w = tile_rows(weights, int(TENSOR_VECTORS));                                                           \
    auto w_first = w.slice(0, 0);                                                                                   \
    TENSOR_PRODUCT(score, 32, 16, DIM, true, multiply);                                                             \
    TENSOR_PRODUCT(add_values, 32, DIM / 4, 32, false, multiply_accumulate);                                        \
    auto acc = add_values.get_destination_cooperative_tensor<decltype(w_first), DeviceRows, float>();               \
    clear(acc);                                                                                                     \
    const uint vector = tid / 4, column = tid % 4 * 16;                                                             \
    const uint position = vector < vectors ? position0 + (vector0 + vector) / packed : last;                        \
    float largest = -INFINITY, sum = 0.0f;                                                                          \
    for (uint t0 = 0; t0 <= last; t0 += TENSOR_TOKENS) {                                                            \
      const uint token = t0 + 16 * sg;                                                                              \
      if (token <= last) {                                                                                          \
        DeviceRows k = device_rows(pages + key_at(p, table, head, token), DIM, min(16u, last + 1 - token));         \
        auto s = score.get_destination_cooperative_tensor<DeviceRows, DeviceRows, float>();                         \
        score.run(q, k, s);                                                                                         \
        UNROLL for (ushort i = 0; i < s.get_capacity(); i++) {                                                      \
          if (!s.is_valid_element(i)) continue;                                                                     \
          const auto at = s.get_multidimensional_index(i);                                                          \
          scores[uint(at[1]) * TENSOR_SCORES + 16 * sg + uint(at[0])] = s[i];                                       \
        }                                                                                                           \
      }                                                                                                             \
      threadgroup_barrier(mem_flags::mem_threadgroup);                                                              \
      threadgroup const float* line = scores + vector * TENSOR_SCORES + column;                                     \
      float v[16];                                                                                                  \
      float best = -INFINITY;                                                                                       \
      UNROLL for (uint i = 0; i < 16; i++) {                                                                        \
        v[i] = t0 + column + i <= position ? line[i] * p.scale : -INFINITY;                                         \
        best = max(best, v[i]);                                                                                     \
      }                                                                                                             \
      best = max(best, simd_shuffle_xor(best, ushort(1)));                                                          \
      best = max(best, simd_shuffle_xor(best, ushort(2)));                                                          \
      const float next = max(largest, best);                                                                        \
      const float keep = largest == next ? 1.0f : precise::exp(largest - next);                                     \
      float part = 0.0f;                                                                                            \
      UNROLL for (uint i = 0; i < 16; i++) {                                                                        \
        v[i] = t0 + column + i <= position ? precise::exp(v[i] - next) : 0.0f;                                      \
        part += v[i];                                                                                               \
      }                                                                                                             \
      UNROLL for (uint i = 0; i < 16; i += 8)                                                                       \
        put8(weights + vector * TILE_STRIDE(bfloat) + column + i, float4(v[i], v[i + 1], v[i + 2], v[i + 3]),       \
             float4(v[i + 4], v[i + 5], v[i + 6], v[i + 7]));                                                       \
      part += simd_shuffle_xor(part, ushort(1));                                                                    \
      part += simd_shuffle_xor(part, ushort(2));                                                                    \
      sum = fma(sum, keep, part);                                                                                   \
      largest = next;                                                                                               \
      if (tid % 4 == 0) factors[vector] = keep;                                                                     \
      threadgroup_barrier(mem_flags::mem_threadgroup);                                                              \
      if (t0 != 0 && simd_any(factors[lane] != 1.0f)) {                                                             \
        UNROLL for (ushort i = 0; i < acc.get_capacity(); i++)                                                      \
          if (acc.is_valid_element(i)) acc[i] = acc[i] * factors[acc.get_multidimensional_index(i)[1]];             \
      }                                                                                                             \
      for (uint t = t0; t < t0 + TENSOR_TOKENS && t <= last; t += 32) {                                             \
        auto a = w.slice(int(t - t0), 0);                                                                           \
        DeviceRows b = DeviceRows((device bfloat*)pages + key_at(p, table, head, t) + value_offset(p) + mine,       \
                                  dextents<int32_t, 2>(DIM / 4, int(min(32u, last + 1 - t))),                       \
                                  array<int32_t, 2>({1, DIM}));                                                     \
        add_values.run(a, b, acc);                                                                                  \
      }                                                                                                             \
    }                                                                                                               \
    threadgroup_barrier(mem_flags::mem_threadgroup);                                                                \
    if (tid % 4 == 0) factors[vector] = sum;                                                                        \
    threadgroup_barrier(mem_flags::mem_threadgroup);                                                                \
    UNROLL for (ushort i = 0; i < acc.get_capacity(); i++) {                                                        \
      if (!acc.is_valid_element(i)) continue;                                                                       \
      const auto at = acc.get_multidimensional_index(i);                                                            \
      const uint v = uint(at[1]), d = mine + uint(at[0]);                                                           \
      if (v >= vectors) continue;                                                                                   \
      const ulong to = ulong(first_row + (vector0 + v) / packed) * p.heads + head * packed + (vector0 + v) % packed;\
      const float gate = float(query_gate[to * 2 * DIM + DIM + d]);                                                 \
      y[to * DIM + d] = bfloat(acc[i] / factors[v] * sigmoid(gate));                                                \
    }                                                                                                               \
  }
ATTENTION_TENSOR(attention_tensor_d64, 64)
ATTENTION_TENSOR(attention_tensor_d128, 128)
ATTENTION_TENSOR(attention_tensor_d256, 256)
