// The sampler, bit for bit dev.lily.engine.sampling's, whose Javadoc defines it. From the exponential on all arithmetic
// is on integers, so that sums do not depend on the order in which threads take them.
//
// sample_candidates cuts the vocabulary into blocks of 4096 tokens and lists, in ascending order of ids, those of each
// block that can still be chosen: its top_k likeliest, or all. sample_choose takes the lists of a row and chooses.
// Between two choices for one sampling slot both must have run, since penalties see the tokens chosen before.

constant constexpr uint BLOCK = 4096;
constant constexpr uint PER_THREAD = BLOCK / 256;
constant constexpr uint MAX_LISTED = 256;   // a larger top_k lists all
constant constexpr uint RESULT_WORDS = 64;  // of one row's result
constant constexpr uint MAX_TOP = 20;
constant constexpr uint NO_TOKEN = 0xFFFFFFFFu;
constant constexpr ulong ONE = 1ul << 40;

// Written by the host when a sequence starts, but for the step.
struct SamplingSlot {
  uint seed_low;
  uint seed_high;
  uint step_low;
  uint step_high;
  float inverse_temperature;  // min(1 / temperature, largest float); 1 if greedy
  uint top_k;                 // 0: all; 1 if greedy
  uint top_p_share;           // round(top_p * 2^30); 2^30: off
  uint min_p_low;             // ceil(min_p * 2^40); 0: off
  uint min_p_high;
  float presence;
  float frequency;
  float repetition;
  uint has_penalties;
  uint is_masked;
  uint num_biases;
  int top_logprobs;           // -1: no log-probabilities
};

// A row to sample from.
struct SamplingRow {
  uint logit_row;
  uint slot;
};

struct SamplingParams {
  uint vocabulary;
  uint blocks;       // ceil(vocabulary / 4096)
  uint mask_words;   // 32-bit words of a slot's mask
  uint max_biases;   // entries of a slot's bias list
};

// A number that orders as the logit does; both zeros are one.
static inline uint order_key(float logit) {
  const uint bits = as_type<uint>(logit + 0.0f);
  return bits ^ ((bits & 0x80000000u) != 0 ? 0xFFFFFFFFu : 0x80000000u);
}
static inline float logit_of(uint key) {
  return as_type<float>((key & 0x80000000u) != 0 ? key ^ 0x80000000u : ~key);
}

// e^x * 2^40 for x <= 0, as Weights.of defines it step by step.
static inline ulong weight_of(float x) {
  if (!(x >= -27.75f)) return 0;
  const int n = int(fma(x, 1.442695f, -0.5f));
  const float r = fma(-float(n), -2.12194440e-4f, fma(-float(n), 0.693359375f, x));
  float q = 1.9875691e-4f;
  q = fma(q, r, 1.3981999e-3f);
  q = fma(q, r, 8.333452e-3f);
  q = fma(q, r, 4.1665796e-2f);
  q = fma(q, r, 1.6666666e-1f);
  q = fma(q, r, 0.5f);
  const float power = fma(q, r * r, r) + 1.0f;
  return (ulong(int(power * 16777216.0f)) << 16) >> uint(-n);
}
static inline ulong weight_at(float logit, float largest, float inverse_temperature) {
  return logit == largest ? ONE : weight_of((logit - largest) * inverse_temperature);
}

// Exclusive prefix sum over the lanes; the last lane's value plus its own is the simdgroup's sum.
static inline ulong prefix_sum(ulong v, uint lane) {
  ulong s = v;
  for (uint delta = 1; delta < SIMD; delta <<= 1) {
    const uint low = simd_shuffle_up(uint(s), ushort(delta));
    const uint high = simd_shuffle_up(uint(s >> 32), ushort(delta));
    if (lane >= delta) s += ulong(high) << 32 | low;
  }
  return s - v;
}
static inline ulong simd_total(ulong v) {
  for (uint mask = 16; mask > 0; mask >>= 1) {
    const uint low = simd_shuffle_xor(uint(v), ushort(mask));
    const uint high = simd_shuffle_xor(uint(v >> 32), ushort(mask));
    v += ulong(high) << 32 | low;
  }
  return v;
}
// The same over a threadgroup; sums holds a value per simdgroup. Barriers before and after.
static inline ulong threadgroup_total(ulong v, threadgroup ulong* sums, uint lane, uint sg, uint sgs) {
  const ulong mine = simd_total(v);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lane == 0) sums[sg] = mine;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  ulong total = 0;
  for (uint i = 0; i < sgs; i++) total += sums[i];
  return total;
}

static inline ulong high_product(ulong a, ulong b) {
  const ulong a0 = a & 0xFFFFFFFFul, a1 = a >> 32, b0 = b & 0xFFFFFFFFul, b1 = b >> 32;
  const ulong low = a0 * b0, middle1 = a1 * b0 + (low >> 32), middle2 = a0 * b1 + (middle1 & 0xFFFFFFFFul);
  return a1 * b1 + (middle1 >> 32) + (middle2 >> 32);
}

// Output number `step` of SplitMix64 started at the seed.
static inline ulong random_of(ulong seed, ulong step) {
  ulong z = seed + (step + 1) * 0x9E3779B97F4A7C15ul;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ul;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBul;
  return z ^ (z >> 31);
}

// ---------------------------------------------------------------------------------------------------------------
// Selection by radix: histograms of 8-bit digits of the keys, largest digit first. A bin's sum of weights is kept in
// four pieces of 11 bits in 32-bit atomics: exact for up to 2^20 tokens.

constant constexpr uint BINS = 256;
constant constexpr uint PIECES = 4;
constant constexpr uint PIECE_BITS = 11;

static inline void clear_bins(threadgroup atomic_uint* bins, uint tid, uint threads) {
  for (uint i = tid; i < BINS * PIECES; i += threads) atomic_store_explicit(&bins[i], 0u, memory_order_relaxed);
}
static inline void add_to_bin(threadgroup atomic_uint* bins, uint digit, ulong weight) {
  for (uint i = 0; i < PIECES && weight != 0; i++, weight >>= PIECE_BITS) {
    const uint piece = uint(weight) & ((1u << PIECE_BITS) - 1);
    if (piece != 0) atomic_fetch_add_explicit(&bins[digit * PIECES + i], piece, memory_order_relaxed);
  }
}
static inline ulong bin_sum(threadgroup atomic_uint* bins, uint digit) {
  ulong sum = 0;
  for (uint i = 0; i < PIECES; i++)
    sum += ulong(atomic_load_explicit(&bins[digit * PIECES + i], memory_order_relaxed)) << (PIECE_BITS * i);
  return sum;
}

// What a digit's selection found: the digit at which the sum from the top reaches what is needed, and the sum above it.
struct Digit {
  uint digit;
  ulong above;
};

// By the first simdgroup; the digit is written for the others. above: sum of all larger keys with other digits before.
static inline void find_digit(threadgroup atomic_uint* bins, ulong above, ulong needed, threadgroup Digit& out, uint lane) {
  const uint top = BINS - 1 - lane * (BINS / SIMD);  // this lane's largest digit
  ulong mine = 0;
  for (uint i = 0; i < BINS / SIMD; i++) mine += bin_sum(bins, top - i);
  ulong before = above + prefix_sum(mine, lane);
  if (before < needed && before + mine >= needed) {
    uint digit = top;
    for (; before + bin_sum(bins, digit) < needed; digit--) before += bin_sum(bins, digit);
    out.digit = digit;
    out.above = before;
  }
}

// ---------------------------------------------------------------------------------------------------------------

// A token's logit after mask, bias and penalties.
static inline float adjusted(float logit, uint token, SamplingSlot slot, device const uint* mask,
                             device const uint* counts, device const uint* bias_tokens,
                             device const float* bias_values) {
  if (slot.is_masked != 0 && ((mask[token / 32] >> (token % 32)) & 1u) == 0) logit = -INFINITY;
  uint low = 0, high = slot.num_biases;
  while (low < high) {
    const uint middle = (low + high) / 2;
    if (bias_tokens[middle] < token) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low < slot.num_biases && bias_tokens[low] == token) logit += bias_values[low];
  if (slot.has_penalties != 0) {
    const uint seen = counts[token], count = seen & 0x7FFFFFFFu;
    if (seen != 0) {
      logit = logit > 0.0f ? logit / slot.repetition : logit * slot.repetition;
      if (count > 0) logit = fma(-slot.frequency, float(count), logit - slot.presence);
    }
  }
  return logit;
}

static inline SamplingSlot load_slot(device const SamplingSlot* s) {
  SamplingSlot slot;
  slot.seed_low = s->seed_low;
  slot.seed_high = s->seed_high;
  slot.step_low = s->step_low;
  slot.step_high = s->step_high;
  slot.inverse_temperature = s->inverse_temperature;
  slot.top_k = s->top_k;
  slot.top_p_share = s->top_p_share;
  slot.min_p_low = s->min_p_low;
  slot.min_p_high = s->min_p_high;
  slot.presence = s->presence;
  slot.frequency = s->frequency;
  slot.repetition = s->repetition;
  slot.has_penalties = s->has_penalties;
  slot.is_masked = s->is_masked;
  slot.num_biases = s->num_biases;
  slot.top_logprobs = s->top_logprobs;
  return slot;
}

// The tokens of one block that can be chosen. logits [logit rows, vocabulary] fp32; rows: to sample from; slots; masks
// [slots, mask_words], bit t % 32 of word t / 32 allows token t; counts [slots, vocabulary]: how often a token was
// generated, bit 31: it occurs in the prompt; bias_tokens ascending, bias_values [slots, max_biases];
// ids, values [rows, blocks, 4096]: the list; sizes [rows, blocks].
// Grid (blocks, rows) of 256 threads. RAW: the likeliest tokens by unmodified logits instead, for log-probabilities.
#define CANDIDATES(NAME, RAW)                                                                                   \
  [[max_total_threads_per_threadgroup(256)]] kernel void NAME(                                                 \
      device const float* logits [[buffer(0)]], device const SamplingRow* rows [[buffer(1)]],                  \
      device const SamplingSlot* slots [[buffer(2)]], device const uint* masks [[buffer(3)]],                  \
      device const uint* counts [[buffer(4)]], device const uint* bias_tokens [[buffer(5)]],                   \
      device const float* bias_values [[buffer(6)]], device uint* ids [[buffer(7)]],                           \
      device float* values [[buffer(8)]], device uint* sizes [[buffer(9)]],                                    \
      constant SamplingParams& p [[buffer(10)]], uint2 group [[threadgroup_position_in_grid]],                 \
      uint tid [[thread_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]],                       \
      uint sg [[simdgroup_index_in_threadgroup]]) {                                                            \
    threadgroup atomic_uint bins[BINS * PIECES];                                                               \
    threadgroup Digit found;                                                                                   \
    threadgroup uint totals[SIMD];                                                                             \
    const uint row = rows[group.y].logit_row, s = rows[group.y].slot;                                          \
    const SamplingSlot slot = load_slot(slots + s);                                                            \
    const ulong list = (ulong(group.y) * p.blocks + group.x) * BLOCK;                                          \
    if (RAW && slot.top_logprobs < 0) {                                                                        \
      if (tid == 0) sizes[group.y * p.blocks + group.x] = 0;                                                   \
      return;                                                                                                  \
    }                                                                                                          \
    uint keys[PER_THREAD]; /* 0: cannot be chosen */                                                           \
    const uint token0 = group.x * BLOCK + tid * PER_THREAD;                                                    \
    uint usable = 0;                                                                                           \
    for (uint i = 0; i < PER_THREAD; i++) {                                                                    \
      keys[i] = 0;                                                                                             \
      const uint token = token0 + i;                                                                           \
      if (token < p.vocabulary) {                                                                              \
        float v = logits[ulong(row) * p.vocabulary + token];                                                   \
        if (!RAW)                                                                                              \
          v = adjusted(v, token, slot, masks + ulong(s) * p.mask_words, counts + ulong(s) * p.vocabulary,      \
                       bias_tokens + ulong(s) * p.max_biases, bias_values + ulong(s) * p.max_biases);          \
        if (v > -INFINITY) {                                                                                   \
          keys[i] = order_key(v);                                                                              \
          usable++;                                                                                            \
        }                                                                                                      \
      }                                                                                                        \
    }                                                                                                          \
    const uint k = RAW ? max(1u, uint(slot.top_logprobs)) : slot.top_k;                                        \
    const uint mine = simd_sum(usable);                                                                        \
    if (lane == 0) totals[sg] = mine;                                                                          \
    threadgroup_barrier(mem_flags::mem_threadgroup);                                                           \
    const uint total = simd_sum(lane < 8 ? totals[lane] : 0u);                                                 \
    uint cut = 1, equals = NO_TOKEN; /* keys above the cut, and the first `equals` of those at it */           \
    if (k != 0 && k <= MAX_LISTED && total > k) {                                                              \
      cut = 0;                                                                                                 \
      ulong above = 0;                                                                                         \
      for (uint shift = 24;; shift -= 8) {                                                                     \
        threadgroup_barrier(mem_flags::mem_threadgroup);                                                       \
        clear_bins(bins, tid, 256);                                                                            \
        threadgroup_barrier(mem_flags::mem_threadgroup);                                                       \
        for (uint i = 0; i < PER_THREAD; i++)                                                                  \
          if (keys[i] != 0 && (shift == 24 || keys[i] >> (shift + 8) == cut >> (shift + 8)))                   \
            add_to_bin(bins, (keys[i] >> shift) & 255u, 1);                                                    \
        threadgroup_barrier(mem_flags::mem_threadgroup);                                                       \
        if (sg == 0) find_digit(bins, above, k, found, lane);                                                  \
        threadgroup_barrier(mem_flags::mem_threadgroup);                                                       \
        cut |= found.digit << shift;                                                                           \
        above = found.above;                                                                                   \
        if (shift == 0) break;                                                                                 \
      }                                                                                                        \
      equals = k - uint(above);                                                                                \
    }                                                                                                          \
    uint at_cut = 0;                                                                                           \
    for (uint i = 0; i < PER_THREAD; i++) at_cut += keys[i] == cut ? 1u : 0u;                                  \
    const uint cut_before = simd_prefix_exclusive_sum(at_cut);                                                 \
    threadgroup_barrier(mem_flags::mem_threadgroup);                                                           \
    if (lane == SIMD - 1) totals[sg] = cut_before + at_cut;                                                    \
    threadgroup_barrier(mem_flags::mem_threadgroup);                                                           \
    uint rank = simd_shuffle(simd_prefix_exclusive_sum(lane < 8 ? totals[lane] : 0u), ushort(sg)) + cut_before; \
    uint kept = 0;                                                                                             \
    for (uint i = 0; i < PER_THREAD; i++) {                                                                    \
      if (keys[i] == cut && rank++ >= equals) keys[i] = 0;                                                     \
      if (keys[i] < cut) keys[i] = 0;                                                                          \
      kept += keys[i] != 0 ? 1u : 0u;                                                                          \
    }                                                                                                          \
    const uint kept_before = simd_prefix_exclusive_sum(kept);                                                  \
    threadgroup_barrier(mem_flags::mem_threadgroup);                                                           \
    if (lane == SIMD - 1) totals[sg] = kept_before + kept;                                                     \
    threadgroup_barrier(mem_flags::mem_threadgroup);                                                           \
    const uint base = simd_prefix_exclusive_sum(lane < 8 ? totals[lane] : 0u);                                 \
    uint at = simd_shuffle(base, ushort(sg)) + kept_before;                                                    \
    if (tid == 255) sizes[group.y * p.blocks + group.x] = at + kept;                                           \
    for (uint i = 0; i < PER_THREAD; i++)                                                                      \
      if (keys[i] != 0) {                                                                                      \
        ids[list + at] = token0 + i;                                                                           \
        values[list + at++] = logit_of(keys[i]);                                                               \
      }                                                                                                        \
  }
CANDIDATES(sample_candidates, false)
CANDIDATES(sample_raw_candidates, true)

// ---------------------------------------------------------------------------------------------------------------

constant constexpr uint CHOOSE_SIMDGROUPS = 32;

// The candidates still in the running: keys above the cut, and the first `equals` in ascending order of ids at it.
struct Running {
  uint cut;
  ulong equals;
};

// Narrows `running` to the fewest likeliest candidates whose weights reach `needed`. by_count: a weight is 1.
static inline void keep_likeliest(thread Running& running, ulong needed, bool by_count, float largest,
                                  float inverse_temperature, device const float* values, device const uint* sizes,
                                  uint blocks, threadgroup atomic_uint* bins, threadgroup Digit& found, uint tid,
                                  uint lane, uint sg) {
  uint cut = 0;
  ulong above = 0;
  for (uint shift = 24;; shift -= 8) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    clear_bins(bins, tid, CHOOSE_SIMDGROUPS * SIMD);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint b = sg; b < blocks; b += CHOOSE_SIMDGROUPS)
      for (uint i = lane; i < sizes[b]; i += SIMD) {
        const float v = values[b * BLOCK + i];
        const uint key = order_key(v);
        // Equals at the running cut that are out have a digit like those that are in: only the latter count, below.
        if (key > running.cut && (shift == 24 || key >> (shift + 8) == cut >> (shift + 8)))
          add_to_bin(bins, (key >> shift) & 255u, by_count ? 1ul : weight_at(v, largest, inverse_temperature));
      }
    if (tid == 0 && running.equals != 0 && running.cut != 0 &&
        (shift == 24 || running.cut >> (shift + 8) == cut >> (shift + 8))) {
      const ulong one = by_count ? 1ul : weight_at(logit_of(running.cut), largest, inverse_temperature);
      // equals * weight exceeds 41 bits only in the last piece, which has 32.
      const ulong all = running.equals * one;
      for (uint i = 0; i < PIECES; i++) {
        const ulong piece = i + 1 < PIECES ? (all >> (PIECE_BITS * i)) & ((1ul << PIECE_BITS) - 1) : all >> (PIECE_BITS * i);
        atomic_fetch_add_explicit(&bins[((running.cut >> shift) & 255u) * PIECES + i], uint(piece), memory_order_relaxed);
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (sg == 0) find_digit(bins, above, needed, found, lane);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    cut |= found.digit << shift;
    above = found.above;
    if (shift == 0) break;
  }
  const ulong one = by_count ? 1ul : weight_at(logit_of(cut), largest, inverse_temperature);
  running.cut = cut;
  running.equals = (needed - above + one - 1) / one;
}

// Sum of the running candidates' weights of at least `least`, and how many stand at the cut before them.
static inline ulong running_weight(Running running, ulong least, float largest, float inverse_temperature,
                                   device const float* values, device const uint* sizes, uint blocks,
                                   threadgroup ulong* sums, uint lane, uint sg) {
  ulong sum = 0;
  for (uint b = sg; b < blocks; b += CHOOSE_SIMDGROUPS)
    for (uint i = lane; i < sizes[b]; i += SIMD) {
      const float v = values[b * BLOCK + i];
      if (order_key(v) > running.cut) {
        const ulong w = weight_at(v, largest, inverse_temperature);
        if (w >= least) sum += w;
      }
    }
  sum = threadgroup_total(sum, sums, lane, sg, CHOOSE_SIMDGROUPS);
  if (running.cut != 0) {
    const ulong w = weight_at(logit_of(running.cut), largest, inverse_temperature);
    if (w >= least) sum += running.equals * w;
  }
  return sum;
}

// Chooses a token for each row, records it in its slot and advances the slot's step. ids, values, sizes: from
// sample_candidates; results [rows, 64] words: the token or NO_TOKEN, then what sample_report adds;
// last_tokens [slots]. One threadgroup of 1024 threads per row; rows have different slots.
[[max_total_threads_per_threadgroup(1024)]] kernel void sample_choose(
    device const SamplingRow* rows [[buffer(0)]], device SamplingSlot* slots [[buffer(1)]],
    device const uint* ids [[buffer(2)]], device const float* values [[buffer(3)]],
    device const uint* sizes [[buffer(4)]], device uint* counts [[buffer(5)]], device int* last_tokens [[buffer(6)]],
    device uint* results [[buffer(7)]], constant SamplingParams& p [[buffer(8)]],
    uint group [[threadgroup_position_in_grid]], uint tid [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]], uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup atomic_uint bins[BINS * PIECES];
  threadgroup Digit found;
  threadgroup ulong sums[CHOOSE_SIMDGROUPS];
  threadgroup ulong at_cut[CHOOSE_SIMDGROUPS];
  threadgroup float maxima[CHOOSE_SIMDGROUPS];
  const uint s = rows[group].slot;
  const SamplingSlot slot = load_slot(slots + s);
  device const uint* my_ids = ids + ulong(group) * p.blocks * BLOCK;
  device const float* my_values = values + ulong(group) * p.blocks * BLOCK;
  device const uint* my_sizes = sizes + group * p.blocks;

  float best = -INFINITY;
  ulong listed = 0;
  for (uint b = sg; b < p.blocks; b += CHOOSE_SIMDGROUPS)
    for (uint i = lane; i < my_sizes[b]; i += SIMD) {
      best = max(best, my_values[b * BLOCK + i]);
      listed++;
    }
  best = simd_max(best);
  if (lane == 0) maxima[sg] = best;
  listed = threadgroup_total(listed, sums, lane, sg, CHOOSE_SIMDGROUPS);
  const float largest = simd_max(maxima[lane]);
  if (listed == 0) {
    if (tid == 0) results[group * RESULT_WORDS] = NO_TOKEN;
    return;
  }

  const float inverse = slot.inverse_temperature;
  Running running = {0, 0};  // all
  if (slot.top_k != 0 && slot.top_k < listed)
    keep_likeliest(running, slot.top_k, true, largest, inverse, my_values, my_sizes, p.blocks, bins, found, tid, lane, sg);
  if (slot.top_p_share < 1u << 30) {
    const ulong total = running_weight(running, 0, largest, inverse, my_values, my_sizes, p.blocks, sums, lane, sg);
    const ulong high = total >> 30, low = total & ((1ul << 30) - 1), share = slot.top_p_share;
    const ulong needed = max(1ul, high * share + ((low * share + (1ul << 30) - 1) >> 30));
    keep_likeliest(running, needed, false, largest, inverse, my_values, my_sizes, p.blocks, bins, found, tid, lane, sg);
  }
  const ulong least = max(1ul, ulong(slot.min_p_high) << 32 | slot.min_p_low);
  const ulong total = running_weight(running, least, largest, inverse, my_values, my_sizes, p.blocks, sums, lane, sg);
  const ulong step = ulong(slot.step_high) << 32 | slot.step_low;
  const ulong target = high_product(random_of(ulong(slot.seed_high) << 32 | slot.seed_low, step), total);
  ulong cut_weight = running.cut == 0 ? 0 : weight_at(logit_of(running.cut), largest, inverse);
  if (cut_weight < least) cut_weight = 0;

  // Simdgroup s takes a stretch of blocks, so that stretches are in ascending order of ids.
  const uint first = sg * p.blocks / CHOOSE_SIMDGROUPS, end = (sg + 1) * p.blocks / CHOOSE_SIMDGROUPS;
  ulong weight = 0, equal = 0;
  for (uint b = first; b < end; b++)
    for (uint i = lane; i < my_sizes[b]; i += SIMD) {
      const float v = my_values[b * BLOCK + i];
      const uint key = order_key(v);
      const ulong w = key > running.cut ? weight_at(v, largest, inverse) : 0;
      if (w >= least) weight += w;
      if (key == running.cut) equal++;
    }
  weight = simd_total(weight);
  equal = simd_total(equal);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lane == 0) {
    sums[sg] = weight;
    at_cut[sg] = equal;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  ulong before = 0, equal_before = 0;
  for (uint i = 0; i < sg; i++) {
    const ulong allowed = equal_before < running.equals ? min(at_cut[i], running.equals - equal_before) : 0;
    before += sums[i] + allowed * cut_weight;
    equal_before += at_cut[i];
  }
  const ulong allowed = equal_before < running.equals ? min(equal, running.equals - equal_before) : 0;
  if (target < before || target >= before + weight + allowed * cut_weight) return;

  // This simdgroup's stretch holds the choice.
  for (uint b = first; b < end; b++)
    for (uint i0 = 0; i0 < my_sizes[b]; i0 += SIMD) {
      const bool listed_here = i0 + lane < my_sizes[b];
      const float v = listed_here ? my_values[b * BLOCK + i0 + lane] : -INFINITY;
      const uint key = listed_here ? order_key(v) : 0;
      const bool is_equal = listed_here && running.cut != 0 && key == running.cut;
      const ulong rank = equal_before + simd_prefix_exclusive_sum(is_equal ? 1u : 0u);
      ulong w = 0;
      if (listed_here && key > running.cut) w = weight_at(v, largest, inverse);
      if (w < least) w = 0;
      if (is_equal && rank < running.equals) w = cut_weight;
      const ulong from = before + prefix_sum(w, lane);
      if (w != 0 && target >= from && target < from + w) {
        const uint token = my_ids[b * BLOCK + i0 + lane];
        results[group * RESULT_WORDS] = token;
        last_tokens[s] = int(token);
        counts[ulong(s) * p.vocabulary + token] += 1;
        slots[s].step_low = uint(step + 1);
        slots[s].step_high = uint((step + 1) >> 32);
      }
      before += simd_total(w);
      equal_before += simd_sum(is_equal ? 1u : 0u);
    }
}

// ---------------------------------------------------------------------------------------------------------------
// Log-probabilities, where a row's slot asks for them. The host finishes them in double precision:
// logit - largest - ln(sum / 2^40).

// Largest unmodified logit of a row, from its lists.
static inline float largest_listed(device const float* values, device const uint* sizes, uint blocks,
                                   threadgroup float* maxima, uint lane, uint sg, uint sgs) {
  float best = -INFINITY;
  for (uint b = sg; b < blocks; b += sgs)
    for (uint i = lane; i < sizes[b]; i += SIMD) best = max(best, values[b * BLOCK + i]);
  best = simd_max(best);
  if (lane == 0) maxima[sg] = best;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return simd_max(lane < sgs ? maxima[lane] : -INFINITY);
}

// Sums of weights of a block at temperature 1. values, sizes: from sample_raw_candidates; block_sums [rows, blocks].
// Grid (blocks, rows) of 256 threads.
[[max_total_threads_per_threadgroup(256)]] kernel void sample_raw_weights(
    device const float* logits [[buffer(0)]], device const SamplingRow* rows [[buffer(1)]],
    device const SamplingSlot* slots [[buffer(2)]], device const float* values [[buffer(3)]],
    device const uint* sizes [[buffer(4)]], device ulong* block_sums [[buffer(5)]],
    constant SamplingParams& p [[buffer(6)]], uint2 group [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]],
    uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup float maxima[SIMD];
  threadgroup ulong sums[SIMD];
  if (slots[rows[group.y].slot].top_logprobs < 0) return;
  const float largest = largest_listed(values + ulong(group.y) * p.blocks * BLOCK, sizes + group.y * p.blocks, p.blocks,
                                       maxima, lane, sg, 8);
  ulong sum = 0;
  for (uint i = tid; i < BLOCK; i += 256) {
    const uint token = group.x * BLOCK + i;
    if (token < p.vocabulary) sum += weight_at(logits[ulong(rows[group.y].logit_row) * p.vocabulary + token], largest, 1.0f);
  }
  sum = threadgroup_total(sum, sums, lane, sg, 8);
  if (tid == 0) block_sums[group.y * p.blocks + group.x] = sum;
}

// Completes results after sample_choose: word 1 the chosen token's unmodified logit, 2 the largest one, 3 and 4 the sum
// of weights, 5 the number of alternatives, 6 .. 25 their tokens, likeliest first, 26 .. 45 their logits.
// One threadgroup of 1024 threads per row.
[[max_total_threads_per_threadgroup(1024)]] kernel void sample_report(
    device const float* logits [[buffer(0)]], device const SamplingRow* rows [[buffer(1)]],
    device const SamplingSlot* slots [[buffer(2)]], device const uint* ids [[buffer(3)]],
    device const float* values [[buffer(4)]], device const uint* sizes [[buffer(5)]],
    device const ulong* block_sums [[buffer(6)]], device uint* results [[buffer(7)]],
    constant SamplingParams& p [[buffer(8)]], uint group [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]],
    uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup float maxima[SIMD];
  const int top = slots[rows[group].slot].top_logprobs;
  if (top < 0) return;
  device const uint* my_ids = ids + ulong(group) * p.blocks * BLOCK;
  device const float* my_values = values + ulong(group) * p.blocks * BLOCK;
  device const uint* my_sizes = sizes + group * p.blocks;
  device uint* result = results + group * RESULT_WORDS;
  const float largest = largest_listed(my_values, my_sizes, p.blocks, maxima, lane, sg, 32);
  uint listed = 0;
  for (uint b = 0; b < p.blocks; b++) listed += my_sizes[b];
  if (tid == 0) {
    ulong total = 0;
    for (uint b = 0; b < p.blocks; b++) total += block_sums[group * p.blocks + b];
    const uint token = result[0];
    const float chosen = token == NO_TOKEN ? -INFINITY : logits[ulong(rows[group].logit_row) * p.vocabulary + token];
    result[1] = as_type<uint>(chosen);
    result[2] = as_type<uint>(largest);
    result[3] = uint(total);
    result[4] = uint(total >> 32);
    result[5] = min(uint(top), listed);
  }
  // A token's rank is the number of listed tokens before it: larger, or equal and of a lower id.
  for (uint b = sg; b < p.blocks; b += CHOOSE_SIMDGROUPS)
    for (uint i = lane; i < my_sizes[b]; i += SIMD) {
      const uint key = order_key(my_values[b * BLOCK + i]);
      uint rank = 0;
      for (uint c = 0; c < p.blocks && rank < uint(top); c++)
        for (uint j = 0; j < my_sizes[c]; j++) {
          const uint other = order_key(my_values[c * BLOCK + j]);
          rank += other > key || (other == key && (c < b || (c == b && j < i))) ? 1u : 0u;
        }
      if (rank < uint(top)) {
        result[6 + rank] = my_ids[b * BLOCK + i];
        result[6 + MAX_TOP + rank] = as_type<uint>(my_values[b * BLOCK + i]);
      }
    }
}
