// What metal_language.h leaves to the machine, for an NVIDIA GPU through clang's NVPTX target: a simdgroup is a warp,
// device and threadgroup are the global and shared address spaces (1 and 3, as in Metal's own numbering), and 8x8
// products go through the tensor cores. Included by metal_language.h; sm_80 and newer.
//
// Threadgroups are one-dimensional (the executor refuses others).
#pragma once

namespace metal {
namespace shim {
inline uint3 thread_position_in_threadgroup() { return uint3{(uint)__nvvm_read_ptx_sreg_tid_x(), 0u, 0u}; }
inline uint3 threadgroup_position_in_grid() {
  return uint3{(uint)__nvvm_read_ptx_sreg_ctaid_x(), (uint)__nvvm_read_ptx_sreg_ctaid_y(),
               (uint)__nvvm_read_ptx_sreg_ctaid_z()};
}
inline uint3 threads_per_threadgroup() { return uint3{(uint)__nvvm_read_ptx_sreg_ntid_x(), 1u, 1u}; }
inline uint3 threadgroups_per_grid() {
  return uint3{(uint)__nvvm_read_ptx_sreg_nctaid_x(), (uint)__nvvm_read_ptx_sreg_nctaid_y(),
               (uint)__nvvm_read_ptx_sreg_nctaid_z()};
}
inline uint3 thread_position_in_grid() {
  return threadgroup_position_in_grid() * threads_per_threadgroup() + thread_position_in_threadgroup();
}
inline uint3 threads_per_grid() { return threadgroups_per_grid() * threads_per_threadgroup(); }
inline uint thread_index_in_threadgroup() { return (uint)__nvvm_read_ptx_sreg_tid_x(); }
inline uint thread_index_in_simdgroup() { return (uint)__nvvm_read_ptx_sreg_tid_x() & 31u; }
inline uint simdgroup_index_in_threadgroup() { return (uint)__nvvm_read_ptx_sreg_tid_x() >> 5; }
inline uint simdgroups_per_threadgroup() { return (uint)__nvvm_read_ptx_sreg_ntid_x() >> 5; }
inline uint threads_per_simdgroup() { return 32u; }

// setThreadgroupMemoryLength:atIndex:0 is the launch's dynamic shared memory.
extern "C" threadgroup char lily_threadgroup_block[] __attribute__((aligned(16)));

// A parameter struct, read once into registers as Metal's constant buffers are.
template <class P> inline P parameters(device const char* bytes) {
  P p;
  __builtin_memcpy(&p, (const void*)(device const P*)bytes, sizeof p);
  return p;
}
}  // namespace shim

// ---- functions that have no instruction of their own; errors stay below MSL's 4 ulp for precise mathematics

namespace precise {
inline float exp2_approximate(float x) {
  float y;
  asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
inline float exp(float x) {
  const float n = __builtin_rintf(x * 1.44269504f);
  const float r = __builtin_fmaf(n, -1.42860677e-6f, __builtin_fmaf(n, -0.693145752f, x));
  // 2^n in two factors, either of which fp32 holds.
  const int whole = x > 89.0f || x < -104.0f ? 0 : (int)n, half = whole >> 1;
  const float a = __builtin_bit_cast(float, (half + 127) << 23), b = __builtin_bit_cast(float, (whole - half + 127) << 23);
  const float y = exp2_approximate(r * 1.44269504f) * a * b;
  return x > 89.0f ? INFINITY : x < -104.0f ? 0.0f : y;
}
inline float log(float x) {
  const bool tiny = x < 1.17549435e-38f;
  const uint bits = __builtin_bit_cast(uint, tiny ? x * 8388608.0f : x);
  // x = 2^e (1 + m), 1 + m from sqrt(1/2) to sqrt(2)
  const int exponent = (int)(bits - 0x3F3504F3u) >> 23, e = exponent - (tiny ? 23 : 0);
  const float m = __builtin_bit_cast(float, bits - ((uint)exponent << 23)) - 1.0f;
  const float z = m * m;
  float p = 7.0376836292e-2f;
  p = __builtin_fmaf(p, m, -1.1514610310e-1f);
  p = __builtin_fmaf(p, m, 1.1676998740e-1f);
  p = __builtin_fmaf(p, m, -1.2420140846e-1f);
  p = __builtin_fmaf(p, m, 1.4249322787e-1f);
  p = __builtin_fmaf(p, m, -1.6668057665e-1f);
  p = __builtin_fmaf(p, m, 2.0000714765e-1f);
  p = __builtin_fmaf(p, m, -2.4999993993e-1f);
  p = __builtin_fmaf(p, m, 3.3333331174e-1f);
  float y = p * m * z;
  y = __builtin_fmaf((float)e, -2.12194440e-4f, y);
  y = __builtin_fmaf(-0.5f, z, y);
  y = __builtin_fmaf((float)e, 0.693359375f, m + y);
  return x > 0.0f ? (x == INFINITY ? x : y) : x == 0.0f ? -INFINITY : __builtin_nanf("");
}
// x - n pi / 2, and n. Good up to some 10^5.
inline float quadrant(float x, int& n) {
  const float j = __builtin_rintf(x * 0.636619747f);
  n = (int)j;
  return __builtin_fmaf(j, -5.39030253e-15f, __builtin_fmaf(j, -3.13916473e-7f, __builtin_fmaf(j, -1.57079601f, x)));
}
inline float sine_or_cosine(float r, int n) {
  const float z = r * r;
  float s = __builtin_fmaf(-1.9515295891e-4f, z, 8.3321608736e-3f);
  s = __builtin_fmaf(s, z, -1.6666654611e-1f);
  s = __builtin_fmaf(s * z, r, r);
  float c = __builtin_fmaf(2.443315711809948e-5f, z, -1.388731625493765e-3f);
  c = __builtin_fmaf(c, z, 4.166664568298827e-2f);
  c = __builtin_fmaf(c * z, z, __builtin_fmaf(-0.5f, z, 1.0f));
  const float v = (n & 1) != 0 ? c : s;
  return (n & 2) != 0 ? -v : v;
}
inline float sin(float x) {
  int n;
  const float r = quadrant(x, n);
  return sine_or_cosine(r, n);
}
inline float cos(float x) {
  int n;
  const float r = quadrant(x, n);
  return sine_or_cosine(r, n + 1);
}
}  // namespace precise
using precise::cos;
using precise::exp;
using precise::log;
using precise::sin;

// ---- synchronisation functions

enum class mem_flags { mem_none = 0, mem_device = 1, mem_threadgroup = 2 };
constexpr mem_flags operator|(mem_flags a, mem_flags b) { return mem_flags(int(a) | int(b)); }
inline void threadgroup_barrier(mem_flags) { __syncthreads(); }
inline void simdgroup_barrier(mem_flags) { __nvvm_bar_warp_sync(0xFFFFFFFFu); }

// ---- simdgroup functions

namespace shim {
constexpr uint ALL_LANES = 0xFFFFFFFFu;
// One 32-bit shuffle per word of a value.
template <class T, class F> inline T shuffled(T v, F shuffle) {
  static_assert(is_simd_type<T>, "simdgroup functions take no 64-bit types");
  constexpr uint words = (sizeof(T) + 3) / 4;
  int parts[words] = {};
  __builtin_memcpy(parts, &v, sizeof v);
  for (uint i = 0; i < words; i++) parts[i] = shuffle(parts[i]);
  T out;
  __builtin_memcpy(&out, parts, sizeof out);
  return out;
}
}  // namespace shim

template <class T> inline T simd_shuffle(T v, ushort lane) {
  return shim::shuffled(v, [=](int w) { return __nvvm_shfl_sync_idx_i32(shim::ALL_LANES, w, lane, 31); });
}
template <class T> inline T simd_broadcast(T v, ushort lane) { return simd_shuffle(v, lane); }
template <class T> inline T simd_shuffle_xor(T v, ushort mask) {
  return shim::shuffled(v, [=](int w) { return __nvvm_shfl_sync_bfly_i32(shim::ALL_LANES, w, mask, 31); });
}
template <class T> inline T simd_shuffle_up(T v, ushort delta) {
  return shim::shuffled(v, [=](int w) { return __nvvm_shfl_sync_up_i32(shim::ALL_LANES, w, delta, 0); });
}
template <class T> inline T simd_shuffle_down(T v, ushort delta) {
  return shim::shuffled(v, [=](int w) { return __nvvm_shfl_sync_down_i32(shim::ALL_LANES, w, delta, 31); });
}
// The same tree in every lane, and as in the CPU run: addition commutes.
template <class T> inline T simd_sum(T v) {
  for (ushort half = 16; half > 0; half >>= 1) v += simd_shuffle_xor(v, half);
  return v;
}
template <class T> inline T simd_max(T v) {
  for (ushort half = 16; half > 0; half >>= 1) v = max(v, simd_shuffle_xor(v, half));
  return v;
}
template <class T> inline T simd_min(T v) {
  for (ushort half = 16; half > 0; half >>= 1) v = min(v, simd_shuffle_xor(v, half));
  return v;
}
template <class T> inline T simd_prefix_exclusive_sum(T v) {
  const uint lane = shim::thread_index_in_simdgroup();
  T sum = v;
  for (ushort delta = 1; delta < 32; delta <<= 1) {
    const T other = simd_shuffle_up(sum, delta);
    if (lane >= delta) sum += other;
  }
  const T before = simd_shuffle_up(sum, 1);
  return lane == 0 ? T(0) : before;
}
inline bool simd_any(bool v) { return __nvvm_vote_any_sync(shim::ALL_LANES, v) != 0; }

// ---- atomics: relaxed, 32 bits

enum memory_order { memory_order_relaxed };
template <class T> struct _atomic {
  T value;
};
typedef _atomic<uint> atomic_uint;
typedef _atomic<int> atomic_int;
#define LILY_ATOMIC(SPACE)                                                                                  \
  template <class T> inline T atomic_load_explicit(const volatile SPACE _atomic<T>* p, memory_order) {      \
    return __atomic_load_n(&p->value, __ATOMIC_RELAXED);                                                    \
  }                                                                                                         \
  template <class T> inline void atomic_store_explicit(volatile SPACE _atomic<T>* p, T v, memory_order) {   \
    __atomic_store_n(&p->value, v, __ATOMIC_RELAXED);                                                       \
  }                                                                                                         \
  template <class T> inline T atomic_fetch_add_explicit(volatile SPACE _atomic<T>* p, T v, memory_order) {  \
    return __atomic_fetch_add(&p->value, v, __ATOMIC_RELAXED);                                              \
  }
LILY_ATOMIC(device)
LILY_ATOMIC(threadgroup)
#undef LILY_ATOMIC

// ---- 8x8 matrices. Lane l holds elements (l / 4, 2 (l % 4)) and its right neighbour, as the A and C operands of mma
// do. The B operand is spread as the transpose, so a bf16 matrix loaded transposed is kept as it was in memory and
// says so; inlining turns the flag into a constant.
//
// Two neighbours are one load: their address must be a multiple of the pair's size, or the GPU stops the launch.

template <class T, int Columns, int Rows> struct simdgroup_matrix;
template <> struct simdgroup_matrix<float, 8, 8> {
  float2 e;
};
template <> struct simdgroup_matrix<bfloat, 8, 8> {
  uint e;
  bool is_transposed;
};
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;

namespace shim {
inline uint fragment_row() { return thread_index_in_simdgroup() / 4; }
inline uint fragment_column() { return thread_index_in_simdgroup() % 4 * 2; }

inline uint transposed(uint pair) {
  uint out;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(out) : "r"(pair));
  return out;
}
// d = a b + s. The tensor core multiplies 16 rows; the lower eight are zero.
inline float2 multiply(uint a, uint b, float2 s) {
  float2 d;
  float rest0, rest1;
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};"
      : "=f"(d.x), "=f"(d.y), "=f"(rest0), "=f"(rest1)
      : "r"(a), "r"(0u), "r"(b), "f"(s.x), "f"(s.y), "f"(0.0f), "f"(0.0f));
  return d;
}

// A matrix as a sum of `count` bf16 matrices, largest first: exact, since 3 x 8 bits hold an fp32 mantissa.
template <class T> struct parts;
template <> struct parts<bfloat> {
  static constexpr int count = 1;
  uint of[1];
  bool is_transposed;
  parts(simdgroup_matrix<bfloat, 8, 8> m) : of{m.e}, is_transposed(m.is_transposed) {}
};
template <> struct parts<float> {
  static constexpr int count = 3;
  uint of[3];
  static constexpr bool is_transposed = false;
  parts(simdgroup_matrix<float, 8, 8> m) {
    float x = m.e.x, y = m.e.y;  // a bit cast of a vector's element takes the first one
    for (int i = 0; i < 3; i++) {
      const uint high_x = __builtin_bit_cast(uint, x) & 0xFFFF0000u;
      const uint high_y = __builtin_bit_cast(uint, y) & 0xFFFF0000u;
      of[i] = high_x >> 16 | high_y;
      x -= __builtin_bit_cast(float, high_x);
      y -= __builtin_bit_cast(float, high_y);
    }
  }
};
}  // namespace shim

template <class T, int Columns, int Rows> inline simdgroup_matrix<T, Columns, Rows> make_filled_simdgroup_matrix(T v) {
  if constexpr (sizeof(T) == 4) {
    return {float2{v, v}};
  } else {
    const uint bits = __builtin_bit_cast(ushort, v);
    return {bits << 16 | bits, false};
  }
}
#define LILY_MATRIX_MEMORY(SPACE)                                                                                 \
  inline void simdgroup_load(simdgroup_matrix<bfloat, 8, 8>& m, const SPACE bfloat* p, ulong stride = 8,          \
                             ulong2 origin = 0, bool transpose = false) {                                         \
    p += origin.y * stride + origin.x + shim::fragment_row() * stride + shim::fragment_column();                  \
    m.e = *(const SPACE uint*)p;                                                                                  \
    m.is_transposed = transpose;                                                                                  \
  }                                                                                                               \
  inline void simdgroup_load(simdgroup_matrix<float, 8, 8>& m, const SPACE float* p, ulong stride = 8,            \
                             ulong2 origin = 0, bool transpose = false) {                                         \
    p += origin.y * stride + origin.x;                                                                            \
    const uint r = shim::fragment_row(), c = shim::fragment_column();                                             \
    if (transpose) {                                                                                              \
      m.e = float2{p[c * stride + r], p[(c + 1) * stride + r]};                                                   \
    } else {                                                                                                      \
      m.e = *(const SPACE float2*)(p + r * stride + c);                                                           \
    }                                                                                                             \
  }                                                                                                               \
  inline void simdgroup_store(simdgroup_matrix<float, 8, 8> m, SPACE float* p, ulong stride = 8,                  \
                              ulong2 origin = 0, bool transpose = false) {                                        \
    p += origin.y * stride + origin.x;                                                                            \
    const uint r = shim::fragment_row(), c = shim::fragment_column();                                             \
    if (transpose) {                                                                                              \
      p[c * stride + r] = m.e.x;                                                                                  \
      p[(c + 1) * stride + r] = m.e.y;                                                                            \
    } else {                                                                                                      \
      *(SPACE float2*)(p + r * stride + c) = m.e;                                                                 \
    }                                                                                                             \
  }
LILY_MATRIX_MEMORY(device)
LILY_MATRIX_MEMORY(threadgroup)
#undef LILY_MATRIX_MEMORY

// Products of parts from the smallest to the largest. Of two fp32 matrices the smallest product of parts, below 2^-28
// of the whole, is left out.
template <class A, class B>
inline void simdgroup_multiply_accumulate(simdgroup_matrix<float, 8, 8>& d, simdgroup_matrix<A, 8, 8> a,
                                          simdgroup_matrix<B, 8, 8> b, simdgroup_matrix<float, 8, 8> s) {
  shim::parts<A> left(a);
  shim::parts<B> right(b);
  constexpr int last = left.count + right.count - 2;
  if (left.is_transposed)
    for (int i = 0; i < left.count; i++) left.of[i] = shim::transposed(left.of[i]);
  if (!right.is_transposed)
    for (int j = 0; j < right.count; j++) right.of[j] = shim::transposed(right.of[j]);
  float2 sum = s.e;
  for (int order = last == 4 ? 3 : last; order >= 0; order--)
    for (int i = 0; i < left.count; i++)
      if (const int j = order - i; j >= 0 && j < right.count) sum = shim::multiply(left.of[i], right.of[j], sum);
  d.e = sum;
}
}  // namespace metal
