// Gated DeltaNet. A slot's state is fp32 [value heads, value_dim, key_dim], so that the 32 lanes of a simdgroup read a
// value column's keys side by side. Its window is bf16 [value heads, conv_kernel - 1, 2 key_dim + value_dim]: the last
// inputs of a value head's query, key and value channels, oldest first. Value heads that share a key head keep their own
// copies of its channels, so that each threadgroup updates what it alone reads.

struct DeltaParams {
  uint key_heads;
  uint value_heads;
  uint key_dim;        // at most 256
  uint value_dim;      // at most 256
  uint conv_kernel;    // at most 8
  uint window_stride;  // elements from one slot's window of this layer to the next slot's
  uint state_stride;
  float eps;
};

constant constexpr uint MAX_DIM = 256;
constant constexpr uint MAX_TAPS = 8;
constant constexpr uint STEP_SIMDGROUPS = 16;
constant constexpr uint COLUMNS = 4;  // value columns of a simdgroup at a time

// Channel of a value head's c-th of 2 key_dim + value_dim channels.
static inline uint channel_of(constant DeltaParams& p, uint head, uint c) {
  const uint key_head = head / (p.value_heads / p.key_heads);
  if (c < p.key_dim) return key_head * p.key_dim + c;
  if (c < 2 * p.key_dim) return (p.key_heads + key_head) * p.key_dim + c - p.key_dim;
  return 2 * p.key_heads * p.key_dim + head * p.value_dim + c - 2 * p.key_dim;
}
static inline uint channels_of(constant DeltaParams& p) {
  return 2 * p.key_heads * p.key_dim + p.value_heads * p.value_dim;
}

static inline float decay_of(float a, float a_log, float dt_bias) {
  return precise::exp(-precise::exp(a_log) * softplus(a + dt_bias));
}

constant constexpr float L2_EPS = 1e-6f;

// Where a lane's keys of a column, or of a query or key, lie: four side by side in every 128.
static inline uint key_of(uint lane, uint i) { return i / 4 * 128 + lane * 4 + i % 4; }

// Up to KEYS of `dims` values, a lane's; zero past the last.
template <uint KEYS>
static inline void load_keys(device const float* from, uint dims, uint lane, thread float* to) {
  for (uint i = 0; i < KEYS; i += 4) {
    const uint d = key_of(lane, i);
    if (dims % 4 == 0) {
      const float4 four = d < dims ? *(device const float4*)(from + d) : float4(0.0f);
      for (uint j = 0; j < 4; j++) to[i + j] = four[j];
    } else {
      for (uint j = 0; j < 4; j++) to[i + j] = d + j < dims ? from[d + j] : 0.0f;
    }
  }
}
template <uint KEYS>
static inline void store_keys(thread const float* from, uint dims, uint lane, device float* to) {
  for (uint i = 0; i < KEYS; i += 4) {
    const uint d = key_of(lane, i);
    if (dims % 4 == 0) {
      if (d < dims) *(device float4*)(to + d) = float4(from[i], from[i + 1], from[i + 2], from[i + 3]);
    } else {
      for (uint j = 0; j < 4; j++)
        if (d + j < dims) to[d + j] = from[i + j];
    }
  }
}

// A simdgroup's COLUMNS columns of a state, and back.
template <uint KEYS>
static inline void load_columns(device const float* state, uint j0, uint value_dim, uint key_dim, uint lane,
                                thread float* s) {
  for (uint c = 0; c < COLUMNS; c++)
    load_keys<KEYS>(state + (j0 + c) * key_dim, j0 + c < value_dim ? key_dim : 0u, lane, s + c * KEYS);
}
template <uint KEYS>
static inline void store_columns(thread const float* s, uint j0, uint value_dim, uint key_dim, uint lane,
                                 device float* state) {
  for (uint c = 0; c < COLUMNS; c++)
    store_keys<KEYS>(s + c * KEYS, j0 + c < value_dim ? key_dim : 0u, lane, state + (j0 + c) * key_dim);
}

// One column of the state, a lane's keys of it. Returns the output.
template <uint KEYS>
static inline float advance(thread float* s, thread const float* q, thread const float* k, float v, float decay,
                            float beta) {
  float read = 0.0f;
  for (uint i = 0; i < KEYS; i++) {
    s[i] *= decay;
    read = fma(s[i], k[i], read);
  }
  const float d = beta * (v - simd_sum(read));
  float o = 0.0f;
  for (uint i = 0; i < KEYS; i++) {
    s[i] = fma(k[i], d, s[i]);
    o = fma(s[i], q[i], o);
  }
  return simd_sum(o);
}

// Decode: convolution, gates, one step and the gated norm of one row of each sequence. The state is read once and
// written once. qkv [rows, channels], z [rows, value_heads * value_dim], a, b [rows, value_heads]: bf16; conv [channels,
// conv_kernel], a_log, dt_bias [value_heads], gain [value_dim]: fp32; window, state: of slot 0 and this layer;
// y [rows, value_heads * value_dim] bf16. Grid (value_heads, sequences) of 512 threads. 35B: 32 threadgroups.
#define DELTA_STEP(NAME, KEYS)                                                                                   \
  [[max_total_threads_per_threadgroup(512)]] kernel void NAME(                                                  \
      device const bfloat* qkv [[buffer(0)]], device const bfloat* z [[buffer(1)]],                             \
      device const bfloat* a [[buffer(2)]], device const bfloat* b [[buffer(3)]],                               \
      device const float* conv [[buffer(4)]], device const float* a_log [[buffer(5)]],                          \
      device const float* dt_bias [[buffer(6)]], device const float* gain [[buffer(7)]],                        \
      device const Sequence* sequences [[buffer(8)]], device bfloat* window [[buffer(9)]],                      \
      device float* state [[buffer(10)]], device bfloat* y [[buffer(11)]],                                      \
      constant DeltaParams& p [[buffer(12)]], uint2 group [[threadgroup_position_in_grid]],                     \
      uint tid [[thread_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]],                        \
      uint sg [[simdgroup_index_in_threadgroup]]) {                                                             \
    threadgroup float vectors[3 * MAX_DIM];                                                                     \
    threadgroup float outputs[MAX_DIM];                                                                         \
    const uint head = group.x;                                                                                  \
    const uint row = sequences[group.y].first_row, slot = sequences[group.y].slot;                              \
    const uint width = 2 * p.key_dim + p.value_dim;                                                             \
    /* The first columns are on their way while the convolution runs, the next ones while they are updated. */  \
    device float* mine = state + ulong(slot) * p.state_stride + head * p.value_dim * p.key_dim;                 \
    float s[COLUMNS * KEYS], next[COLUMNS * KEYS];                                                              \
    load_columns<KEYS>(mine, sg * COLUMNS, p.value_dim, p.key_dim, lane, next);                                 \
    device bfloat* taps = window + ulong(slot) * p.window_stride + head * (p.conv_kernel - 1) * width;          \
    for (uint c = tid; c < width; c += 512) {                                                                   \
      const uint channel = channel_of(p, head, c);                                                              \
      const bfloat input = qkv[ulong(row) * channels_of(p) + channel];                                          \
      float sum = 0.0f;                                                                                         \
      for (uint t = 0; t + 1 < p.conv_kernel; t++) {                                                            \
        const bfloat before = taps[t * width + c];                                                              \
        sum = fma(conv[channel * p.conv_kernel + t], float(before), sum);                                       \
        if (t > 0) taps[(t - 1) * width + c] = before;                                                          \
      }                                                                                                         \
      if (p.conv_kernel > 1) taps[(p.conv_kernel - 2) * width + c] = input;                                     \
      vectors[c] = silu(fma(conv[channel * p.conv_kernel + p.conv_kernel - 1], float(input), sum));             \
    }                                                                                                           \
    threadgroup_barrier(mem_flags::mem_threadgroup);                                                            \
    float q[KEYS], k[KEYS];                                                                                     \
    float q_squares = 0.0f, k_squares = 0.0f;                                                                   \
    for (uint i = 0; i < KEYS; i++) {                                                                           \
      const uint d = key_of(lane, i);                                                                           \
      q[i] = d < p.key_dim ? vectors[d] : 0.0f;                                                                 \
      k[i] = d < p.key_dim ? vectors[p.key_dim + d] : 0.0f;                                                     \
      q_squares = fma(q[i], q[i], q_squares);                                                                   \
      k_squares = fma(k[i], k[i], k_squares);                                                                   \
    }                                                                                                           \
    const float q_scale = 1.0f / (sqrt(simd_sum(q_squares) + L2_EPS) * sqrt(float(p.key_dim)));                 \
    const float k_scale = 1.0f / sqrt(simd_sum(k_squares) + L2_EPS);                                            \
    for (uint i = 0; i < KEYS; i++) {                                                                           \
      q[i] *= q_scale;                                                                                          \
      k[i] *= k_scale;                                                                                          \
    }                                                                                                           \
    const ulong gate = ulong(row) * p.value_heads + head;                                                       \
    const float decay = decay_of(float(a[gate]), a_log[head], dt_bias[head]);                                   \
    const float beta = sigmoid(float(b[gate]));                                                                 \
    for (uint j0 = sg * COLUMNS; j0 < p.value_dim; j0 += STEP_SIMDGROUPS * COLUMNS) {                           \
      for (uint i = 0; i < COLUMNS * KEYS; i++) s[i] = next[i];                                                 \
      const uint j1 = j0 + STEP_SIMDGROUPS * COLUMNS;                                                           \
      if (j1 < p.value_dim) load_columns<KEYS>(mine, j1, p.value_dim, p.key_dim, lane, next);                   \
      for (uint c = 0; c < COLUMNS; c++) {                                                                      \
        const float v = j0 + c < p.value_dim ? vectors[2 * p.key_dim + j0 + c] : 0.0f;                          \
        const float o = advance<KEYS>(s + c * KEYS, q, k, v, decay, beta);                                      \
        if (lane == 0 && j0 + c < p.value_dim) outputs[j0 + c] = o;                                             \
      }                                                                                                         \
      store_columns<KEYS>(s, j0, p.value_dim, p.key_dim, lane, mine);                                           \
    }                                                                                                           \
    threadgroup_barrier(mem_flags::mem_threadgroup);                                                            \
    float squares = 0.0f;                                                                                       \
    for (uint j = lane; j < p.value_dim; j += SIMD) squares = fma(outputs[j], outputs[j], squares);             \
    const float scale = 1.0f / sqrt(simd_sum(squares) / float(p.value_dim) + p.eps);                            \
    if (tid < p.value_dim) {                                                                                    \
      const ulong at = gate * p.value_dim + tid;                                                                \
      y[at] = bfloat(outputs[tid] * scale * gain[tid] * silu(float(z[at])));                                    \
    }                                                                                                           \
  }
DELTA_STEP(delta_step_k128, 4)
DELTA_STEP(delta_step_k256, 8)

// ---------------------------------------------------------------------------------------------------------------
// Prefill: delta_mix over all rows, delta_scan over each sequence's rows in order, delta_norm over all rows.

// Convolution, L2 norms and gates. mixed [rows, channels] fp32: normalised q and k, v; gates [rows, value_heads, 2]
// fp32: decay, beta; sequence_of [rows]: index into sequences. A simdgroup per head: first the query heads, then the
// key heads, then the value heads. Grid (ceil((2 key_heads + value_heads) / 8), rows) of 256 threads.
[[max_total_threads_per_threadgroup(256)]] kernel void delta_mix(
    device const bfloat* qkv [[buffer(0)]], device const bfloat* a [[buffer(1)]], device const bfloat* b [[buffer(2)]],
    device const float* conv [[buffer(3)]], device const float* a_log [[buffer(4)]],
    device const float* dt_bias [[buffer(5)]], device const Sequence* sequences [[buffer(6)]],
    device const uint* sequence_of [[buffer(7)]], device const bfloat* window [[buffer(8)]],
    device float* mixed [[buffer(9)]], device float* gates [[buffer(10)]], constant DeltaParams& p [[buffer(11)]],
    uint2 group [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]],
    uint sg [[simdgroup_index_in_threadgroup]]) {
  const uint item = group.x * MATVEC_SIMDGROUPS + sg;
  if (item >= 2 * p.key_heads + p.value_heads) return;
  const uint row = group.y;
  const uint first_row = sequences[sequence_of[row]].first_row, slot = sequences[sequence_of[row]].slot;
  const uint width = 2 * p.key_dim + p.value_dim;
  const bool is_value = item >= 2 * p.key_heads, is_key = !is_value && item >= p.key_heads;
  const uint dims = is_value ? p.value_dim : p.key_dim;
  // The first value head of a key head lends its copy of the window.
  const uint head = is_value ? item - 2 * p.key_heads
                             : (is_key ? item - p.key_heads : item) * (p.value_heads / p.key_heads);
  const uint part = is_value ? 2 * p.key_dim : is_key ? p.key_dim : 0u;
  device const bfloat* taps = window + ulong(slot) * p.window_stride + head * (p.conv_kernel - 1) * width + part;
  const uint channel0 = channel_of(p, head, part);
  float values[MAX_DIM / SIMD];
  float squares = 0.0f;
  for (uint i = 0; i < MAX_DIM / SIMD; i++) {
    const uint d = lane + SIMD * i;
    values[i] = 0.0f;
    if (d < dims) {
      float sum = 0.0f;
      for (uint t = 0; t < p.conv_kernel; t++) {
        const uint back = p.conv_kernel - 1 - t;  // rows before this one
        const bfloat input = row - first_row >= back ? qkv[ulong(row - back) * channels_of(p) + channel0 + d]
                                                     : taps[(t + row - first_row) * width + d];
        sum = fma(conv[(channel0 + d) * p.conv_kernel + t], float(input), sum);
      }
      values[i] = silu(sum);
      squares = fma(values[i], values[i], squares);
    }
  }
  const float norm = sqrt(simd_sum(squares) + L2_EPS);
  const float scale = is_value ? 1.0f : is_key ? 1.0f / norm : 1.0f / (norm * sqrt(float(p.key_dim)));
  for (uint i = 0; i < MAX_DIM / SIMD; i++) {
    const uint d = lane + SIMD * i;
    if (d < dims) mixed[ulong(row) * channels_of(p) + channel0 + d] = values[i] * scale;
  }
  if (is_value && lane == 0) {
    const ulong gate = ulong(row) * p.value_heads + head;
    gates[2 * gate] = decay_of(float(a[gate]), a_log[head], dt_bias[head]);
    gates[2 * gate + 1] = sigmoid(float(b[gate]));
  }
}

// What a simdgroup of the scan needs of a row.
template <uint KEYS>
struct ScanRow {
  float q[KEYS];
  float k[KEYS];
  float v[COLUMNS];
  float decay;
  float beta;
};
template <uint KEYS>
static inline void load_scan_row(device const float* mixed, device const float* gates, constant DeltaParams& p, uint row,
                                 uint key_head, uint head, uint j0, uint channels, uint lane,
                                 thread ScanRow<KEYS>& to) {
  device const float* vectors = mixed + ulong(row) * channels;
  load_keys<KEYS>(vectors + key_head * p.key_dim, p.key_dim, lane, to.q);
  load_keys<KEYS>(vectors + (p.key_heads + key_head) * p.key_dim, p.key_dim, lane, to.k);
  device const float* v = vectors + 2 * p.key_heads * p.key_dim + head * p.value_dim;
  for (uint c = 0; c < COLUMNS; c++) to.v[c] = v[min(j0 + c, p.value_dim - 1)];
  const ulong gate = ulong(row) * p.value_heads + head;
  to.decay = gates[2 * gate];
  to.beta = gates[2 * gate + 1];
}

// The recurrence, state in registers from a sequence's first row to its last; a row is fetched while the one before it is
// taken. outputs [rows, value_heads * value_dim]
// fp32. Grid (ceil(value_dim / 16), value_heads, sequences) of 128 threads: a simdgroup owns 4 value columns.
#define DELTA_SCAN(NAME, KEYS)                                                                                   \
  [[max_total_threads_per_threadgroup(128)]] kernel void NAME(                                                  \
      device const float* mixed [[buffer(0)]], device const float* gates [[buffer(1)]],                         \
      device const Sequence* sequences [[buffer(2)]], device float* state [[buffer(3)]],                        \
      device float* outputs [[buffer(4)]], constant DeltaParams& p [[buffer(5)]],                               \
      uint3 group [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]],                    \
      uint sg [[simdgroup_index_in_threadgroup]]) {                                                             \
    const uint j0 = (group.x * 4 + sg) * COLUMNS, head = group.y;                                               \
    if (j0 >= p.value_dim) return;                                                                              \
    const uint first_row = sequences[group.z].first_row, end = first_row + sequences[group.z].num_rows;         \
    const uint key_head = head / (p.value_heads / p.key_heads), channels = channels_of(p);                      \
    device float* mine = state + ulong(sequences[group.z].slot) * p.state_stride + head * p.value_dim * p.key_dim; \
    float s[COLUMNS * KEYS];                                                                                    \
    load_columns<KEYS>(mine, j0, p.value_dim, p.key_dim, lane, s);                                              \
    ScanRow<KEYS> row, next;                                                                                    \
    load_scan_row<KEYS>(mixed, gates, p, first_row, key_head, head, j0, channels, lane, next);                  \
    for (uint r = first_row; r < end; r++) {                                                                    \
      row = next;                                                                                               \
      if (r + 1 < end) load_scan_row<KEYS>(mixed, gates, p, r + 1, key_head, head, j0, channels, lane, next);   \
      for (uint c = 0; c < COLUMNS; c++) {                                                                      \
        const float o = advance<KEYS>(s + c * KEYS, row.q, row.k, row.v[c], row.decay, row.beta);               \
        if (lane == 0 && j0 + c < p.value_dim)                                                                  \
          outputs[(ulong(r) * p.value_heads + head) * p.value_dim + j0 + c] = o;                                \
      }                                                                                                         \
    }                                                                                                           \
    store_columns<KEYS>(s, j0, p.value_dim, p.key_dim, lane, mine);                                             \
  }
DELTA_SCAN(delta_scan_k128, 4)
DELTA_SCAN(delta_scan_k256, 8)

// Gated norm, and each sequence's window moved on by the simdgroups of its last row. z, y as in the step; qkv as in
// delta_mix. A simdgroup per value head. Grid (ceil(value_heads / 8), rows) of 256 threads.
[[max_total_threads_per_threadgroup(256)]] kernel void delta_norm(
    device const float* outputs [[buffer(0)]], device const bfloat* z [[buffer(1)]],
    device const float* gain [[buffer(2)]], device const bfloat* qkv [[buffer(3)]],
    device const Sequence* sequences [[buffer(4)]], device const uint* sequence_of [[buffer(5)]],
    device bfloat* window [[buffer(6)]], device bfloat* y [[buffer(7)]], constant DeltaParams& p [[buffer(8)]],
    uint2 group [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]],
    uint sg [[simdgroup_index_in_threadgroup]]) {
  const uint head = group.x * MATVEC_SIMDGROUPS + sg, row = group.y;
  if (head >= p.value_heads) return;
  const ulong at = (ulong(row) * p.value_heads + head) * p.value_dim;
  float squares = 0.0f;
  for (uint j = lane; j < p.value_dim; j += SIMD) squares = fma(outputs[at + j], outputs[at + j], squares);
  const float scale = 1.0f / sqrt(simd_sum(squares) / float(p.value_dim) + p.eps);
  for (uint j = lane; j < p.value_dim; j += SIMD)
    y[at + j] = bfloat(outputs[at + j] * scale * gain[j] * silu(float(z[at + j])));

  const uint first_row = sequences[sequence_of[row]].first_row, num_rows = sequences[sequence_of[row]].num_rows;
  if (row + 1 != first_row + num_rows) return;
  const uint width = 2 * p.key_dim + p.value_dim, kept = p.conv_kernel - 1;
  device bfloat* taps =
      window + ulong(sequences[sequence_of[row]].slot) * p.window_stride + head * kept * width;
  for (uint c = lane; c < width; c += SIMD) {
    const uint channel = channel_of(p, head, c);
    bfloat moved[MAX_TAPS];
    for (uint t = 0; t < kept; t++) {
      const uint back = kept - 1 - t;  // rows before the last one
      moved[t] = num_rows > back ? qkv[ulong(row - back) * channels_of(p) + channel] : taps[(t + num_rows) * width + c];
    }
    for (uint t = 0; t < kept; t++) taps[t * width + c] = moved[t];
  }
}
