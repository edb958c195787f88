// Gated attention over paged keys and values.

constant constexpr uint MAX_HEAD_DIM = 256;

// 1 / rms of a head, by one simdgroup.
static inline float head_scale(device const bfloat* x, uint dim, float eps, uint lane) {
  float squares = 0.0f;
  for (uint d = lane; d < dim; d += SIMD) squares = fma(float(x[d]), float(x[d]), squares);
  return 1.0f / sqrt(simd_sum(squares) / float(dim) + eps);
}

// Element d of a head after norm and rotation. turns[j]: revolutions per position of pair j, in units of 2^-64, so that
// the product with the position, taken modulo 2^64, is the exact angle at any position.
static inline float rotated(device const bfloat* x, device const float* gain, float scale, uint d, uint position,
                            device const ulong* turns, uint half_dim) {
  const float mine = float(x[d]) * scale * gain[d];
  if (d >= 2 * half_dim) return mine;
  const bool low = d < half_dim;
  const uint other = low ? d + half_dim : d - half_dim;
  const ulong turn = turns[low ? d : other] * position;
  const float angle = float(int(uint(turn >> 32))) * 1.46291807926716e-9f;  // 2 pi / 2^32
  const float c = precise::cos(angle), s = precise::sin(angle);
  const float partner = float(x[other]) * scale * gain[other];
  return low ? fma(mine, c, -(partner * s)) : fma(mine, c, partner * s);
}

// Norms, rotation and the append to the pages. query_gate [rows, heads, 2, head_dim], key, value [rows, kv_heads,
// head_dim]: bf16; gains [head_dim] fp32; turns [rotary_dim / 2]; positions, sequence_of [rows]; tables [sequences,
// max_pages]; query [kv_heads, rows, heads / kv_heads, head_dim] bf16.
// A simdgroup per head, query heads first. Grid (ceil((heads + kv_heads) / 8), rows) of 256 threads.
[[max_total_threads_per_threadgroup(256)]] kernel void attention_prepare(
    device const bfloat* query_gate [[buffer(0)]], device const bfloat* key [[buffer(1)]],
    device const bfloat* value [[buffer(2)]], device const float* query_gain [[buffer(3)]],
    device const float* key_gain [[buffer(4)]], device const ulong* turns [[buffer(5)]],
    device const uint* positions [[buffer(6)]], device const uint* sequence_of [[buffer(7)]],
    device const uint* tables [[buffer(8)]], device bfloat* pages [[buffer(9)]], device bfloat* query [[buffer(10)]],
    constant AttentionParams& p [[buffer(11)]], uint2 group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]], uint sg [[simdgroup_index_in_threadgroup]]) {
  const uint item = group.x * MATVEC_SIMDGROUPS + sg, row = group.y;
  if (item >= p.heads + p.kv_heads) return;
  const uint position = positions[row];
  if (item < p.heads) {
    const uint packed = p.heads / p.kv_heads;
    device const bfloat* x = query_gate + (ulong(row) * p.heads + item) * 2 * p.head_dim;
    device bfloat* to = query + ((ulong(item / packed) * p.rows + row) * packed + item % packed) * p.head_dim;
    const float scale = head_scale(x, p.head_dim, p.eps, lane);
    for (uint d = lane; d < p.head_dim; d += SIMD)
      to[d] = bfloat(rotated(x, query_gain, scale, d, position, turns, p.rotary_dim / 2));
    return;
  }
  const uint head = item - p.heads;
  const ulong from = (ulong(row) * p.kv_heads + head) * p.head_dim;
  const ulong to = key_at(p, tables + ulong(sequence_of[row]) * p.max_pages, head, position);
  const float scale = head_scale(key + from, p.head_dim, p.eps, lane);
  for (uint d = lane; d < p.head_dim; d += SIMD) {
    pages[to + d] = bfloat(rotated(key + from, key_gain, scale, d, position, turns, p.rotary_dim / 2));
    pages[to + value_offset(p) + d] = value[from + d];
  }
}

// ---------------------------------------------------------------------------------------------------------------
// Decode. The tokens of a row are cut into at most 64 splits of whole tiles of 64 tokens, by the row's position alone.

constant constexpr uint TILE_TOKENS = 64;
constant constexpr uint MAX_SPLITS = 64;
constant constexpr uint SCORE_STRIDE = TILE_TOKENS + 8;
constant constexpr uint KEYS_AT_ONCE = 16;  // blocks of 8 x 8 that are fetched together

static inline uint tiles_per_split(uint tokens) {
  const uint tiles = (tokens + TILE_TOKENS - 1) / TILE_TOKENS;
  return (tiles + MAX_SPLITS - 1) / MAX_SPLITS;
}
static inline uint splits_of(uint tokens) {
  const uint per_split = tiles_per_split(tokens) * TILE_TOKENS;
  return (tokens + per_split - 1) / per_split;
}

// What the simdgroups of a threadgroup share of a decode.
struct DecodeTile {
  uint begin;       // of the split
  uint end;
  uint last_block;  // the newest token's block of 8, which is in threadgroup memory with the newest token
  uint head;
  uint sg;
  uint lane;
};

// Scores, online softmax and weighted sum of a tile's tokens; DIM: see the kernels. WHOLE: it ends before last_block. Values
// are on their way while scores are made.
template <uint DIM, bool WHOLE>
static inline void attend_tile(constant AttentionParams& p, DecodeTile d, uint t0, device const uint* table,
                               device const bfloat* pages, threadgroup const bfloat* last_keys,
                               threadgroup const bfloat* last_values, threadgroup float* scores,
                               threadgroup float* rescale, thread simdgroup_matrix<bfloat, 8, 8>* q,
                               thread simdgroup_matrix<float, 8, 8>* acc, thread float& largest, thread float& sum) {
  constexpr uint MOST = DIM != 0 ? DIM : MAX_HEAD_DIM;
  constexpr uint FRAGMENTS = (MOST + 63) / 64;  // of 8 output dimensions of a simdgroup
  const uint dim = DIM != 0 ? DIM : p.head_dim;
  const uint token0 = t0 + 8 * d.sg;
  simdgroup_matrix<float, 8, 8> s = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  if (WHOLE || (token0 < d.last_block && token0 < d.end)) {
    device const bfloat* keys = pages + key_at(p, table, d.head, token0);
    for (uint f0 = 0; f0 < MOST / 8; f0 += KEYS_AT_ONCE) {
      simdgroup_matrix<bfloat, 8, 8> k[KEYS_AT_ONCE];
      for (uint f = 0; f < KEYS_AT_ONCE; f++)
        if (DIM != 0 || 8 * (f0 + f) < dim) simdgroup_load(k[f], keys + 8 * (f0 + f), dim, ulong2(0, 0), true);
      for (uint f = 0; f < KEYS_AT_ONCE; f++)
        if (DIM != 0 || 8 * (f0 + f) < dim) simdgroup_multiply_accumulate(s, q[f0 + f], k[f], s);
    }
  } else if (token0 < d.end) {
    for (uint f = 0; f < MOST / 8; f++) {
      if (DIM == 0 && 8 * f >= dim) continue;
      simdgroup_matrix<bfloat, 8, 8> k;
      simdgroup_load(k, last_keys + 8 * f, dim, ulong2(0, 0), true);
      simdgroup_multiply_accumulate(s, q[f], k, s);
    }
  }
  simdgroup_matrix<bfloat, 8, 8> v[TILE_TOKENS / 8 * FRAGMENTS];
  for (uint j = 0; j < TILE_TOKENS / 8; j++) {
    const uint token = t0 + 8 * j;
    if (!WHOLE && (token >= d.last_block || token >= d.end)) continue;
    device const bfloat* values = pages + key_at(p, table, d.head, token) + value_offset(p);
    for (uint i = 0; i < FRAGMENTS; i++)
      if (DIM != 0 || (d.sg + 8 * i) * 8 < dim)
        simdgroup_load(v[j * FRAGMENTS + i], values + (d.sg + 8 * i) * 8, dim);
  }
  if (WHOLE || token0 < d.end) simdgroup_store(s, scores + 8 * d.sg, SCORE_STRIDE);
  threadgroup_barrier(mem_flags::mem_threadgroup);

  threadgroup float* line = scores + d.sg * SCORE_STRIDE;
  const bool real_a = WHOLE || t0 + d.lane < d.end, real_b = WHOLE || t0 + d.lane + SIMD < d.end;
  const float a = real_a ? line[d.lane] * p.scale : -INFINITY;
  const float b = real_b ? line[d.lane + SIMD] * p.scale : -INFINITY;
  const float next = max(largest, simd_max(max(a, b)));
  const float keep = largest == next ? 1.0f : precise::exp(largest - next);
  const float pa = real_a ? precise::exp(a - next) : 0.0f;
  const float pb = real_b ? precise::exp(b - next) : 0.0f;
  line[d.lane] = pa;
  line[d.lane + SIMD] = pb;
  sum = fma(sum, keep, simd_sum(pa + pb));
  largest = next;
  if (d.lane == 0) rescale[d.sg * 8 + d.sg] = keep;
  threadgroup_barrier(mem_flags::mem_threadgroup);

  if (t0 != d.begin && simd_any(rescale[d.lane % 8 * 9] != 1.0f)) {
    simdgroup_matrix<float, 8, 8> diagonal;
    simdgroup_load(diagonal, rescale, 8);
    for (uint i = 0; i < FRAGMENTS; i++)
      simdgroup_multiply_accumulate(acc[i], diagonal, acc[i], make_filled_simdgroup_matrix<float, 8, 8>(0.0f));
  }
  for (uint j = 0; j < TILE_TOKENS / 8; j++) {
    const uint token = t0 + 8 * j;
    if (!WHOLE && token >= d.end) continue;
    simdgroup_matrix<float, 8, 8> weights;
    simdgroup_load(weights, scores + 8 * j, SCORE_STRIDE);
    for (uint i = 0; i < FRAGMENTS; i++) {
      const uint first = (d.sg + 8 * i) * 8;
      if (DIM == 0 && first >= dim) continue;
      if (!WHOLE && token >= d.last_block) simdgroup_load(v[j * FRAGMENTS + i], last_values + first, dim);
      simdgroup_multiply_accumulate(acc[i], weights, v[j * FRAGMENTS + i], acc[i]);
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
}

// Decode attention of up to 8 query heads of one KV head over one split, norms, rotation and append included: each key
// and value is read once for all of them. The newest token's key and value come from the projections; the last split's
// threadgroup of the first 8 heads appends them. Simdgroup s makes the scores of tokens 8 s .. 8 s + 7 of a tile, then
// every 8th block of 8 output dimensions. Arguments as in attention_prepare; partial [rows, kv_heads * blocks, 64, 8,
// head_dim] fp32: sums not yet divided; stats [.., 64, 8, 2]: largest score, sum of exponentials.
// head_dim and page_tokens multiples of 8. DIM: head_dim, a multiple of 64, or 0 for any. Grid (most splits of a row, kv_heads * blocks, rows) of 256 threads, blocks =
// ceil(heads / kv_heads / 8).
#define ATTENTION_DECODE(NAME, DIM)                                                                             \
  [[max_total_threads_per_threadgroup(256)]] kernel void NAME(                                                  \
      device const bfloat* query_gate [[buffer(0)]], device const bfloat* key [[buffer(1)]],                    \
      device const bfloat* value [[buffer(2)]], device const float* query_gain [[buffer(3)]],                   \
      device const float* key_gain [[buffer(4)]], device const ulong* turns [[buffer(5)]],                      \
      device const uint* positions [[buffer(6)]], device const uint* sequence_of [[buffer(7)]],                 \
      device const uint* tables [[buffer(8)]], device bfloat* pages [[buffer(9)]], device float* partial [[buffer(10)]], \
      device float* stats [[buffer(11)]], constant AttentionParams& p [[buffer(12)]],                           \
      uint3 group [[threadgroup_position_in_grid]], uint tid [[thread_index_in_threadgroup]],                   \
      uint lane [[thread_index_in_simdgroup]], uint sg [[simdgroup_index_in_threadgroup]]) {                    \
    threadgroup bfloat query[8 * MAX_HEAD_DIM];                                                                 \
    threadgroup bfloat last_keys[8 * MAX_HEAD_DIM]; /* the block of 8 tokens that ends with the newest one */   \
    threadgroup bfloat last_values[8 * MAX_HEAD_DIM];                                                           \
    threadgroup float scores[8 * SCORE_STRIDE];                                                                 \
    threadgroup float rescale[64]; /* diagonal */                                                               \
    const uint row = group.z, position = positions[row], tokens = position + 1;                                 \
    if (group.x >= splits_of(tokens)) return;                                                                   \
    const uint packed = p.heads / p.kv_heads, blocks = (packed + 7) / 8;                                        \
    const uint head = group.y / blocks, block = group.y % blocks, dim = DIM != 0 ? DIM : p.head_dim;            \
    const uint begin = group.x * tiles_per_split(tokens) * TILE_TOKENS;                                         \
    const uint end = min(tokens, begin + tiles_per_split(tokens) * TILE_TOKENS);                                \
    const uint last_block = position / 8 * 8;                                                                   \
    device const uint* table = tables + ulong(sequence_of[row]) * p.max_pages;                                  \
    const uint mine = block * 8 + sg; /* this simdgroup's query head of the KV head */                          \
    device const bfloat* x = query_gate + (ulong(row) * p.heads + head * packed + min(mine, packed - 1)) * 2 * dim; \
    const float query_scale = head_scale(x, dim, p.eps, lane);                                                  \
    for (uint d = lane; d < dim; d += SIMD)                                                                     \
      query[sg * dim + d] =                                                                                     \
          mine < packed ? bfloat(rotated(x, query_gain, query_scale, d, position, turns, p.rotary_dim / 2)) : bfloat(0.0f); \
    if (end == tokens) {                                                                                        \
      const uint token = last_block + sg;                                                                       \
      const ulong from = (ulong(row) * p.kv_heads + head) * dim;                                                \
      const float key_scale = head_scale(key + from, dim, p.eps, lane);                                         \
      const ulong at = token <= position ? key_at(p, table, head, token) : 0;                                   \
      for (uint d = lane; d < dim; d += SIMD) {                                                                 \
        bfloat k = bfloat(0.0f), v = bfloat(0.0f);                                                              \
        if (token == position) {                                                                                \
          k = bfloat(rotated(key + from, key_gain, key_scale, d, position, turns, p.rotary_dim / 2));           \
          v = value[from + d];                                                                                  \
          if (block == 0) {                                                                                     \
            pages[at + d] = k;                                                                                  \
            pages[at + value_offset(p) + d] = v;                                                                \
          }                                                                                                     \
        } else if (token < position) {                                                                          \
          k = pages[at + d];                                                                                    \
          v = pages[at + value_offset(p) + d];                                                                  \
        }                                                                                                       \
        last_keys[sg * dim + d] = k;                                                                            \
        last_values[sg * dim + d] = v;                                                                          \
      }                                                                                                         \
    }                                                                                                           \
    if (tid < 64) rescale[tid] = 0.0f;                                                                          \
    threadgroup_barrier(mem_flags::mem_threadgroup);                                                            \
    /* The queries stay in registers. */                                                                        \
    constexpr uint MOST = DIM != 0 ? DIM : MAX_HEAD_DIM;                                                        \
    simdgroup_matrix<bfloat, 8, 8> q[MOST / 8];                                                                 \
    for (uint f = 0; f < MOST / 8; f++)                                                                         \
      if (DIM != 0 || 8 * f < dim) simdgroup_load(q[f], query + 8 * f, dim);                                    \
    float largest = -INFINITY, sum = 0.0f;                                                                      \
    simdgroup_matrix<float, 8, 8> acc[(MOST + 63) / 64];                                                        \
    for (uint i = 0; i < (MOST + 63) / 64; i++) acc[i] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);       \
    DecodeTile tile;                                                                                            \
    tile.begin = begin;                                                                                         \
    tile.end = end;                                                                                             \
    tile.last_block = last_block;                                                                               \
    tile.head = head;                                                                                           \
    tile.sg = sg;                                                                                               \
    tile.lane = lane;                                                                                           \
    for (uint t0 = begin; t0 < end; t0 += TILE_TOKENS) {                                                        \
      if (t0 + TILE_TOKENS <= min(end, last_block))                                                             \
        attend_tile<DIM, true>(p, tile, t0, table, pages, last_keys, last_values, scores, rescale, q, acc, largest, sum); \
      else                                                                                                      \
        attend_tile<DIM, false>(p, tile, t0, table, pages, last_keys, last_values, scores, rescale, q, acc, largest, sum); \
    }                                                                                                           \
    const ulong at = ((ulong(row) * p.kv_heads * blocks + group.y) * MAX_SPLITS + group.x) * 8;                 \
    for (uint i = 0; i < (MOST + 63) / 64; i++) {                                                               \
      const uint d = (sg + 8 * i) * 8;                                                                          \
      if (DIM != 0 || d < dim) simdgroup_store(acc[i], partial + at * dim + d, dim);                            \
    }                                                                                                           \
    if (lane == 0) {                                                                                            \
      stats[(at + sg) * 2] = largest;                                                                           \
      stats[(at + sg) * 2 + 1] = sum;                                                                           \
    }                                                                                                           \
  }
ATTENTION_DECODE(attention_decode, 0)
ATTENTION_DECODE(attention_decode_d256, 256)

// Merges the splits of attention_decode in order and applies the gate. y [rows, heads * head_dim] bf16.
// Grid (heads, rows) of 256 threads.
[[max_total_threads_per_threadgroup(256)]] kernel void attention_merge(
    device const float* partial [[buffer(0)]], device const float* stats [[buffer(1)]],
    device const bfloat* query_gate [[buffer(2)]], device const uint* positions [[buffer(3)]],
    device bfloat* y [[buffer(4)]], constant AttentionParams& p [[buffer(5)]],
    uint2 group [[threadgroup_position_in_grid]], uint d [[thread_index_in_threadgroup]]) {
  if (d >= p.head_dim) return;
  const uint head = group.x, row = group.y, packed = p.heads / p.kv_heads, blocks = (packed + 7) / 8;
  const uint local = head % packed, splits = splits_of(positions[row] + 1);
  const ulong at = ((ulong(row) * p.kv_heads + head / packed) * blocks + local / 8) * MAX_SPLITS * 8 + local % 8;
  float largest = -INFINITY;
  for (uint s = 0; s < splits; s++) largest = max(largest, stats[(at + s * 8) * 2]);
  float sum = 0.0f, out = 0.0f;
  for (uint s = 0; s < splits; s++) {
    const float weight = precise::exp(stats[(at + s * 8) * 2] - largest);
    sum = fma(stats[(at + s * 8) * 2 + 1], weight, sum);
    out = fma(partial[(at + s * 8) * p.head_dim + d], weight, out);
  }
  const ulong to = (ulong(row) * p.heads + head) * p.head_dim + d;
  const float gate = float(query_gate[(ulong(row) * p.heads + head) * 2 * p.head_dim + p.head_dim + d]);
  y[to] = bfloat(out / sum * sigmoid(gate));
}

// Decode attention for shapes that attention_decode does not take, after attention_prepare. One query head and row per
// threadgroup: a thread a token for the scores, a thread a dimension for the sums. Arguments as below.
// Grid (heads, rows) of 256 threads.
[[max_total_threads_per_threadgroup(256)]] kernel void attention_plain(
    device const bfloat* query [[buffer(0)]], device const bfloat* query_gate [[buffer(1)]],
    device const uint* positions [[buffer(2)]], device const uint* sequence_of [[buffer(3)]],
    device const uint* tables [[buffer(4)]], device const bfloat* pages [[buffer(5)]], device bfloat* y [[buffer(6)]],
    constant AttentionParams& p [[buffer(7)]], uint2 group [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]],
    uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup float weights[256];
  threadgroup float maxima[SIMD];
  threadgroup float sums[SIMD];
  const uint head = group.x, row = group.y, packed = p.heads / p.kv_heads, kv_head = head / packed, dim = p.head_dim;
  device const bfloat* q = query + ((ulong(kv_head) * p.rows + row) * packed + head % packed) * dim;
  device const uint* table = tables + ulong(sequence_of[row]) * p.max_pages;
  const uint tokens = positions[row] + 1;
  float largest = -INFINITY, sum = 0.0f, out = 0.0f;
  for (uint t0 = 0; t0 < tokens; t0 += 256) {
    float score = -INFINITY;
    if (t0 + tid < tokens) {
      device const bfloat* k = pages + key_at(p, table, kv_head, t0 + tid);
      score = 0.0f;
      for (uint d = 0; d < dim; d++) score = fma(float(q[d]), float(k[d]), score);
      score *= p.scale;
    }
    const float best = simd_max(score);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (lane == 0) maxima[sg] = best;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const float next = max(largest, simd_max(lane < 8 ? maxima[lane] : -INFINITY));
    const float keep = largest == next ? 1.0f : precise::exp(largest - next);
    const float weight = t0 + tid < tokens ? precise::exp(score - next) : 0.0f;
    weights[tid] = weight;
    sum = fma(sum, keep, threadgroup_sum(weight, sums, lane, sg, 8));
    largest = next;
    out *= keep;
    if (tid < dim)
      for (uint t = 0; t < min(256u, tokens - t0); t++)
        out = fma(weights[t], float(pages[key_at(p, table, kv_head, t0 + t) + value_offset(p) + tid]), out);
  }
  if (tid < dim) {
    const float gate = float(query_gate[(ulong(row) * p.heads + head) * 2 * dim + dim + tid]);
    y[(ulong(row) * p.heads + head) * dim + tid] = bfloat(out / sum * sigmoid(gate));
  }
}

// ---------------------------------------------------------------------------------------------------------------
// Prefill, after attention_prepare: causal, online softmax over tiles of 16 tokens counted from the sequence's start.
// A threadgroup takes 32 query vectors (row, query head of one KV head), so that a tile serves heads and rows alike;
// a simdgroup takes 8 of them and holds their queries and sums in registers.
// query, positions' rows and pages as written by attention_prepare; y [rows, heads * head_dim] bf16.
// DIM: head_dim rounded up. Grid (ceil(most rows of a sequence * heads / kv_heads / 32), kv_heads, sequences) of 128.

constant constexpr uint PREFILL_TOKENS = 16;

// Spreads 8 rows of FN fragments over a simdgroup's own 64 FN floats of threadgroup memory.
template <uint FN>
static inline void spread(thread simdgroup_matrix<float, 8, 8>* fragments, threadgroup float* strip) {
  simdgroup_barrier(mem_flags::mem_threadgroup);
  for (uint j = 0; j < FN; j++) simdgroup_store(fragments[j], strip + 8 * j, 8 * FN);
  simdgroup_barrier(mem_flags::mem_threadgroup);
}

#define ATTENTION_PREFILL(NAME, DIM)                                                                             \
  [[max_total_threads_per_threadgroup(128)]] kernel void NAME(                                                   \
      device const bfloat* query [[buffer(0)]], device const bfloat* query_gate [[buffer(1)]],                   \
      device const Sequence* sequences [[buffer(2)]], device const uint* tables [[buffer(3)]],                   \
      device const bfloat* pages [[buffer(4)]], device bfloat* y [[buffer(5)]],                                  \
      constant AttentionParams& p [[buffer(6)]], uint3 group [[threadgroup_position_in_grid]],                   \
      uint3 grid [[threadgroups_per_grid]],                                                                      \
      uint tid [[thread_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]],                         \
      uint sg [[simdgroup_index_in_threadgroup]]) {                                                              \
    threadgroup uint4 memory[2 * PREFILL_TOKENS * (DIM + 8) / 8];                                                \
    threadgroup bfloat* tile = (threadgroup bfloat*)memory;                                                      \
    threadgroup float strips[4 * 8 * PREFILL_TOKENS];                                                            \
    threadgroup float diagonals[4 * 64];                                                                         \
    const uint packed = p.heads / p.kv_heads, head = group.y, dim = p.head_dim;                                  \
    const uint first_row = sequences[group.z].first_row, total = sequences[group.z].num_rows * packed;           \
    const uint vector0 = (grid.x - 1 - group.x) * 32; /* the longest first */                                    \
    if (vector0 >= total) return;                                                                                \
    const uint position0 = sequences[group.z].position;                                                          \
    const uint last = position0 + min(vector0 + 31, total - 1) / packed;                                         \
    device const uint* table = tables + ulong(group.z) * p.max_pages;                                            \
    const uint fragments = (dim + 7) / 8, stride = DIM + 8;                                                      \
    device const bfloat* queries = query + (ulong(head) * p.rows + first_row) * packed * dim;                    \
    for (uint i = tid; i < 32 * fragments * 8; i += 128) {                                                       \
      const uint v = i / (fragments * 8), d = i % (fragments * 8);                                               \
      tile[v * stride + d] =                                                                                     \
          vector0 + v < total && d < dim ? queries[ulong(vector0 + v) * dim + d] : bfloat(0.0f);                 \
    }                                                                                                            \
    threadgroup float* diagonal = diagonals + sg * 64;                                                           \
    diagonal[lane] = 0.0f;                                                                                       \
    diagonal[lane + SIMD] = 0.0f;                                                                                \
    threadgroup_barrier(mem_flags::mem_threadgroup);                                                             \
    simdgroup_matrix<bfloat, 8, 8> q[DIM / 8];                                                                   \
    simdgroup_matrix<float, 8, 8> acc[DIM / 8];                                                                  \
    for (uint f = 0; f < DIM / 8; f++) {                                                                         \
      if (f >= fragments) continue;                                                                              \
      simdgroup_load(q[f], tile + 8 * sg * stride + 8 * f, stride);                                              \
      acc[f] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);                                                  \
    }                                                                                                            \
    threadgroup float* strip = strips + sg * (8 * PREFILL_TOKENS);                                               \
    const uint vector = vector0 + 8 * sg + lane / 4; /* four lanes share a vector's scores */                    \
    const uint position = vector < total ? position0 + vector / packed : last;                                   \
    float largest = -INFINITY, sum = 0.0f;                                                                       \
    threadgroup bfloat* values = tile + PREFILL_TOKENS * stride;                                                 \
    for (uint t0 = 0; t0 <= last; t0 += PREFILL_TOKENS) {                                                        \
      threadgroup_barrier(mem_flags::mem_threadgroup);                                                           \
      stage_tokens(p, table, pages, head, t0, last, tile, values, stride, fragments * 8, tid);                   \
      threadgroup_barrier(mem_flags::mem_threadgroup);                                                           \
      simdgroup_matrix<float, 8, 8> products[PREFILL_TOKENS / 8];                                                \
      for (uint j = 0; j < PREFILL_TOKENS / 8; j++) products[j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f); \
      for (uint f = 0; f < DIM / 8; f++) {                                                                       \
        if (f >= fragments) continue;                                                                            \
        for (uint j = 0; j < PREFILL_TOKENS / 8; j++) {                                                          \
          simdgroup_matrix<bfloat, 8, 8> k;                                                                      \
          simdgroup_load(k, tile + 8 * j * stride + 8 * f, stride, ulong2(0, 0), true);                          \
          simdgroup_multiply_accumulate(products[j], q[f], k, products[j]);                                      \
        }                                                                                                        \
      }                                                                                                          \
      for (uint j = 0; j < PREFILL_TOKENS / 8; j++) simdgroup_store(products[j], strip + 8 * j, PREFILL_TOKENS); \
      simdgroup_barrier(mem_flags::mem_threadgroup);                                                             \
      const uint column = lane % 4 * 4;                                                                          \
      threadgroup float* line = strip + lane / 4 * PREFILL_TOKENS + column;                                      \
      float s[4];                                                                                                \
      float best = -INFINITY;                                                                                    \
      for (uint i = 0; i < 4; i++) {                                                                             \
        s[i] = t0 + column + i <= position ? line[i] * p.scale : -INFINITY;                                      \
        best = max(best, s[i]);                                                                                  \
      }                                                                                                          \
      best = max(best, simd_shuffle_xor(best, ushort(1)));                                                       \
      best = max(best, simd_shuffle_xor(best, ushort(2)));                                                       \
      const float next = max(largest, best);                                                                     \
      const float keep = largest == next ? 1.0f : precise::exp(largest - next);                                  \
      float part = 0.0f;                                                                                         \
      for (uint i = 0; i < 4; i++) {                                                                             \
        const float weight = t0 + column + i <= position ? precise::exp(s[i] - next) : 0.0f;                     \
        line[i] = weight;                                                                                        \
        part += weight;                                                                                          \
      }                                                                                                          \
      part += simd_shuffle_xor(part, ushort(1));                                                                 \
      part += simd_shuffle_xor(part, ushort(2));                                                                 \
      sum = fma(sum, keep, part);                                                                                \
      largest = next;                                                                                            \
      if (lane % 4 == 0) diagonal[lane / 4 * 9] = keep;                                                          \
      const bool rescale = t0 != 0 && simd_any(keep != 1.0f);                                                    \
      simdgroup_barrier(mem_flags::mem_threadgroup);                                                             \
      simdgroup_matrix<float, 8, 8> keeps, weights[PREFILL_TOKENS / 8];                                          \
      simdgroup_load(keeps, diagonal, 8);                                                                        \
      for (uint j = 0; j < PREFILL_TOKENS / 8; j++) simdgroup_load(weights[j], strip + 8 * j, PREFILL_TOKENS);   \
      for (uint f = 0; f < DIM / 8; f++) {                                                                       \
        if (f >= fragments) continue;                                                                            \
        if (rescale)                                                                                             \
          simdgroup_multiply_accumulate(acc[f], keeps, acc[f], make_filled_simdgroup_matrix<float, 8, 8>(0.0f)); \
        for (uint j = 0; j < PREFILL_TOKENS / 8; j++) {                                                          \
          simdgroup_matrix<bfloat, 8, 8> v;                                                                      \
          simdgroup_load(v, values + 8 * j * stride + 8 * f, stride);                                            \
          simdgroup_multiply_accumulate(acc[f], weights[j], v, acc[f]);                                          \
        }                                                                                                        \
      }                                                                                                          \
      simdgroup_barrier(mem_flags::mem_threadgroup);                                                             \
    }                                                                                                            \
    if (lane % 4 == 0) diagonal[lane / 4] = sum;                                                                 \
    for (uint f = 0; f < DIM / 8; f++) {                                                                         \
      if (f >= fragments) continue;                                                                              \
      spread<1>(acc + f, strip);                                                                                 \
      for (uint e = lane; e < 64; e += SIMD) {                                                                   \
        const uint v = vector0 + 8 * sg + e / 8, d = 8 * f + e % 8;                                              \
        if (v < total && d < dim) {                                                                              \
          const ulong at = ulong(first_row + v / packed) * p.heads + head * packed + v % packed;                 \
          const float gate = float(query_gate[at * 2 * dim + dim + d]);                                          \
          y[at * dim + d] = bfloat(strip[e] / diagonal[e / 8] * sigmoid(gate));                                  \
        }                                                                                                        \
      }                                                                                                          \
    }                                                                                                            \
  }

// Keys and values of 16 tokens; zero past the last token and the last dimension.
static inline void stage_tokens(constant AttentionParams& p, device const uint* table, device const bfloat* pages,
                                uint head, uint t0, uint last, threadgroup bfloat* keys, threadgroup bfloat* values,
                                uint stride, uint padded, uint tid) {
  for (uint i = tid; i < PREFILL_TOKENS * padded / 8; i += 128) {
    const uint t = i / (padded / 8), d = i % (padded / 8) * 8;
    const bool real = t0 + t <= last;
    device const bfloat* k = pages + (real ? key_at(p, table, head, t0 + t) + d : 0);
    device const bfloat* v = k + (real ? value_offset(p) : 0u);
    threadgroup bfloat* to_k = keys + t * stride + d;
    threadgroup bfloat* to_v = values + t * stride + d;
    if (p.head_dim % 8 == 0) {
      *(threadgroup uint4*)to_k = real ? *(device const uint4*)k : uint4(0u);
      *(threadgroup uint4*)to_v = real ? *(device const uint4*)v : uint4(0u);
    } else {
      for (uint j = 0; j < 8; j++) {
        to_k[j] = real && d + j < p.head_dim ? k[j] : bfloat(0.0f);
        to_v[j] = real && d + j < p.head_dim ? v[j] : bfloat(0.0f);
      }
    }
  }
}
ATTENTION_PREFILL(attention_prefill_d64, 64)
ATTENTION_PREFILL(attention_prefill_d128, 128)
ATTENTION_PREFILL(attention_prefill_d256, 256)
