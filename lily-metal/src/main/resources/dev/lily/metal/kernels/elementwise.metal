struct EmbedParams {
  uint columns;
  uint group_size;
  uint vocabulary;  // rows of the matrix; a token outside is taken as 0
};

static inline uint token_of(int token, int slot, device const int* last_tokens, uint vocabulary) {
  const int id = token >= 0 ? token : last_tokens[slot];
  return id < 0 || uint(id) >= vocabulary ? 0u : uint(id);
}

template <typename T>
static inline void embed_row(uint format, device const uint* codes, device const bfloat* scales,
                             device const bfloat* biases, device T* out, EmbedParams p, uint token, uint c) {
  const ulong at = ulong(token) * p.columns + c;
  float v;
  if (format == DENSE_BF16) {
    v = float(((device const bfloat*)codes)[at]);
  } else if (format == DENSE_F32) {
    v = ((device const float*)codes)[at];
  } else {
    const ulong g = at / p.group_size;
    const uint code = format == AFFINE_4 ? (codes[at / 8] >> (4 * (c % 8))) & 15u : (codes[at / 4] >> (8 * (c % 4))) & 255u;
    v = fma(float(scales[g]), float(code), float(biases[g]));
  }
  out[c] = T(v);
}

// out[r] = matrix[token(r)], where a token below 0 stands for last_tokens[slots[r]].
// codes, scales, biases: the embedding (dense: codes alone, the others bound to anything); tokens, slots [rows];
// last_tokens [sampling slots]; out [rows, columns] T. Grid (ceil(columns / 256), rows) of 256 threads.
#define EMBED(NAME, FORMAT, T)                                                                        \
  kernel void NAME(device const uint* codes [[buffer(0)]], device const bfloat* scales [[buffer(1)]], \
                   device const bfloat* biases [[buffer(2)]], device const int* tokens [[buffer(3)]], \
                   device const int* slots [[buffer(4)]], device const int* last_tokens [[buffer(5)]], \
                   device T* out [[buffer(6)]], constant EmbedParams& p [[buffer(7)]],                \
                   uint2 position [[thread_position_in_grid]]) {                                      \
    if (position.x >= p.columns) return;                                                              \
    const uint row = position.y;                                                                      \
    const uint token = token_of(tokens[row], slots[row], last_tokens, p.vocabulary);                  \
    const EmbedParams q = {p.columns, p.group_size, p.vocabulary};                                    \
    embed_row<T>(FORMAT, codes, scales, biases, out + ulong(row) * p.columns, q, token, position.x);  \
  }
EMBED(embed_q4_f32, AFFINE_4, float)
EMBED(embed_q8_f32, AFFINE_8, float)
EMBED(embed_bf16_f32, DENSE_BF16, float)
EMBED(embed_f32_f32, DENSE_F32, float)

struct GatherParams {
  uint columns;
};

// rows[i] = x[row_of[i]] + branch[row_of[i]]. x fp32, branch bf16, rows fp32.
// Grid (ceil(columns / 256), rows wanted) of 256 threads.
kernel void gather_rows(device const float* x [[buffer(0)]], device const bfloat* branch [[buffer(1)]],
                        device const uint* row_of [[buffer(2)]], device float* rows [[buffer(3)]],
                        constant GatherParams& p [[buffer(4)]], uint2 position [[thread_position_in_grid]]) {
  if (position.x >= p.columns) return;
  const ulong from = ulong(row_of[position.y]) * p.columns + position.x;
  rows[ulong(position.y) * p.columns + position.x] = x[from] + float(branch[from]);
}

struct CountParams {
  uint count;
};

// Type conversions of `count` elements. Grid ceil(count / 256) of 256 threads.
kernel void convert_f32_bf16(device const float* from [[buffer(0)]], device bfloat* to [[buffer(1)]],
                             constant CountParams& p [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  if (i < p.count) to[i] = bfloat(from[i]);
}
kernel void convert_bf16_f32(device const bfloat* from [[buffer(0)]], device float* to [[buffer(1)]],
                             constant CountParams& p [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  if (i < p.count) to[i] = float(from[i]);
}

// Copies or clears `count` 16-byte words: snapshots of slots, copies of pages. Grid ceil(count / 256) of 256 threads.
kernel void copy_words(device const uint4* from [[buffer(0)]], device uint4* to [[buffer(1)]],
                       constant CountParams& p [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  if (i < p.count) to[i] = from[i];
}
kernel void clear_words(device uint4* to [[buffer(0)]], constant CountParams& p [[buffer(1)]],
                        uint i [[thread_position_in_grid]]) {
  if (i < p.count) to[i] = uint4(0u);
}
