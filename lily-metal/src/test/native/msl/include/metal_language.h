// The part of Metal Shading Language 3.1 that Lily's kernels use, for stock clang. One header serves the type check
// and the CPU run: address spaces are real attributes, vectors are clang's own ext_vector types, and the library has
// bodies that run one thread of a threadgroup per fiber (see runtime.cpp).
//
// What is not here is either not in MSL or not used by the kernels; a kernel that needs more fails to compile.
// With LILY_GPU the kernels are built for an NVIDIA GPU, and what depends on the machine comes from gpu_language.h.
#pragma once

#define device __attribute__((address_space(1)))
#ifdef LILY_GPU
#define constant const
#else
#define constant const __attribute__((address_space(2)))
#endif
#define threadgroup __attribute__((address_space(3)))
#define thread
#define INFINITY __builtin_inff()

namespace metal {
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned uint;
typedef unsigned long ulong;
typedef __SIZE_TYPE__ size_t;
typedef __bf16 bfloat;

#define LILY_VECTORS(T)                              \
  typedef T T##2 __attribute__((ext_vector_type(2))); \
  typedef T T##3 __attribute__((ext_vector_type(3))); \
  typedef T T##4 __attribute__((ext_vector_type(4)));
LILY_VECTORS(char)
LILY_VECTORS(uchar)
LILY_VECTORS(short)
LILY_VECTORS(ushort)
LILY_VECTORS(int)
LILY_VECTORS(uint)
LILY_VECTORS(long)
LILY_VECTORS(ulong)
LILY_VECTORS(float)
LILY_VECTORS(bfloat)
#undef LILY_VECTORS

// ---- vector constructors: float4(a, b, c, d) is a macro that calls make<float4>(a, b, c, d)

namespace shim {
template <class T> struct shape {
  using element = T;
  static constexpr int size = 1;
};
#define LILY_SHAPE(T)                                                                  \
  template <> struct shape<T##2> { using element = T; static constexpr int size = 2; }; \
  template <> struct shape<T##3> { using element = T; static constexpr int size = 3; }; \
  template <> struct shape<T##4> { using element = T; static constexpr int size = 4; };
LILY_SHAPE(char)
LILY_SHAPE(uchar)
LILY_SHAPE(short)
LILY_SHAPE(ushort)
LILY_SHAPE(int)
LILY_SHAPE(uint)
LILY_SHAPE(long)
LILY_SHAPE(ulong)
LILY_SHAPE(float)
LILY_SHAPE(bfloat)
#undef LILY_SHAPE

template <class E, class A> inline void put(E* out, int& at, A a) {
  if constexpr (shape<A>::size == 1) {
    out[at++] = (E)a;
  } else {
    for (int i = 0; i < shape<A>::size; i++) out[at++] = (E)a[i];
  }
}

// One scalar fills all elements; otherwise the parts' elements must add up.
template <class T, class... A> inline T make(A... a) {
  constexpr int given = (shape<A>::size + ...);
  constexpr int wanted = shape<T>::size;
  static_assert(given == wanted || (sizeof...(A) == 1 && given == 1), "wrong number of elements in a vector constructor");
  typename shape<T>::element parts[wanted > given ? wanted : given];
  int at = 0;
  (put(parts, at, a), ...);
  T out;
  for (int i = 0; i < wanted; i++) out[i] = parts[given == 1 ? 0 : i];
  return out;
}

// ---- positions of the running thread

uint3 thread_position_in_threadgroup();
uint3 threadgroup_position_in_grid();
uint3 threads_per_threadgroup();
uint3 threadgroups_per_grid();
uint3 thread_position_in_grid();
uint3 threads_per_grid();
uint thread_index_in_threadgroup();
uint thread_index_in_simdgroup();
uint simdgroup_index_in_threadgroup();
uint simdgroups_per_threadgroup();
uint threads_per_simdgroup();

template <class T> struct position {
  static T of(uint3 v) { return (T)v.x; }
};
template <> struct position<uint2> {
  static uint2 of(uint3 v) { return v.xy; }
};
template <> struct position<uint3> {
  static uint3 of(uint3 v) { return v; }
};
template <class T> inline T input(uint3 v) { return position<T>::of(v); }
template <class T> inline T input(uint v) { return (T)v; }

// ---- memory

// The address of a threadgroup variable: the same for all threads of a threadgroup.
void* threadgroup_variable(int id, size_t bytes, size_t alignment);
void* threadgroup_block(int index);

template <class T> constexpr bool has_address_space = true;
template <class T> constexpr bool has_address_space<T*> = false;
template <class T> constexpr bool has_address_space<device T*> = true;
template <class T> constexpr bool has_address_space<__attribute__((address_space(2))) T*> = true;
template <class T> constexpr bool has_address_space<threadgroup T*> = true;
template <class T> constexpr bool has_address_space<T&> = has_address_space<T*>;
template <class... A> constexpr bool is_kernel(void (*)(A...)) { return (has_address_space<A> && ...); }

enum access { read = 1, write = 2, atomic = 4 };
void check(const void* address, uint bytes, int access);

// ---- synchronisation: every thread of the simdgroup or threadgroup arrives at the same line

void wait_threadgroup(int line);
void wait_simdgroup(int line);
// Publishes this lane's bytes; returns those of all 32 lanes, lane by lane.
const void* exchange(const void* mine, size_t bytes, int line);
template <class T> inline const T* all(T v, int line) {
  static_assert(sizeof(T) <= 16, "operand of a simdgroup function");
  return (const T*)exchange(&v, sizeof v, line);
}
template <class T> constexpr bool is_simd_type = sizeof(typename shape<T>::element) <= 4;
// Where all lanes must arrive, though no value passes between them: checked in the traced build.
inline void arrive(int line) {
#ifndef LILY_UNTRACED
  exchange(&line, sizeof line, line);
#endif
}
}  // namespace shim

// ---- scalar and vector functions

template <class T, class F> inline T as_type(F f) {
  static_assert(sizeof(T) == sizeof(F), "as_type between sizes");
  return __builtin_bit_cast(T, f);
}
template <class T> inline T min(T a, T b) { return b < a ? b : a; }
template <class T> inline T max(T a, T b) { return a < b ? b : a; }
template <class T> inline T clamp(T x, T low, T high) { return min(max(x, low), high); }
template <class T> inline T select(T a, T b, bool c) { return c ? b : a; }
template <class T> inline T abs(T a) { return a < T(0) ? -a : a; }
inline uint popcount(uint a) { return (uint)__builtin_popcount(a); }
inline uint ctz(uint a) { return a == 0 ? 32u : (uint)__builtin_ctz(a); }
inline uint clz(uint a) { return a == 0 ? 32u : (uint)__builtin_clz(a); }
inline uint mulhi(uint a, uint b) { return (uint)(((ulong)a * b) >> 32); }
template <class T> inline typename shim::shape<T>::element dot(T a, T b) {
  typename shim::shape<T>::element s = a[0] * b[0];
  for (int i = 1; i < shim::shape<T>::size; i++) s += a[i] * b[i];
  return s;
}
inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline float4 fma(float4 a, float4 b, float4 c) { return __builtin_elementwise_fma(a, b, c); }
inline bool isnan(float x) { return x != x; }
inline float floor(float x) { return __builtin_floorf(x); }
inline float fabs(float x) { return __builtin_fabsf(x); }
inline float sqrt(float x) { return __builtin_sqrtf(x); }
inline float rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
#ifndef LILY_GPU
#define LILY_MATH                                                \
  inline float exp(float x) { return __builtin_expf(x); }          \
  inline float exp2(float x) { return __builtin_exp2f(x); }        \
  inline float log(float x) { return __builtin_logf(x); }          \
  inline float sin(float x) { return __builtin_sinf(x); }          \
  inline float cos(float x) { return __builtin_cosf(x); }          \
  inline float pow(float x, float y) { return __builtin_powf(x, y); }
LILY_MATH
namespace precise {
LILY_MATH
}
#undef LILY_MATH

// ---- synchronisation functions

enum class mem_flags { mem_none = 0, mem_device = 1, mem_threadgroup = 2 };
constexpr mem_flags operator|(mem_flags a, mem_flags b) { return mem_flags(int(a) | int(b)); }
inline void threadgroup_barrier(mem_flags, int line = __builtin_LINE()) { shim::wait_threadgroup(line); }
inline void simdgroup_barrier(mem_flags, int line = __builtin_LINE()) { shim::wait_simdgroup(line); }

// ---- simdgroup functions: 32-bit and smaller types only, as MSL has them

#define LILY_SIMD template <class T>
#define LILY_SIMD_TYPE static_assert(shim::is_simd_type<T>, "simdgroup functions take no 64-bit types")
LILY_SIMD inline T simd_shuffle(T v, ushort lane, int line = __builtin_LINE()) {
  LILY_SIMD_TYPE;
  return shim::all(v, line)[lane & 31];
}
LILY_SIMD inline T simd_broadcast(T v, ushort lane, int line = __builtin_LINE()) {
  LILY_SIMD_TYPE;
  return shim::all(v, line)[lane & 31];
}
LILY_SIMD inline T simd_shuffle_xor(T v, ushort mask, int line = __builtin_LINE()) {
  LILY_SIMD_TYPE;
  return shim::all(v, line)[(shim::thread_index_in_simdgroup() ^ mask) & 31];
}
LILY_SIMD inline T simd_shuffle_up(T v, ushort delta, int line = __builtin_LINE()) {
  LILY_SIMD_TYPE;
  const uint lane = shim::thread_index_in_simdgroup();
  const T* all = shim::all(v, line);
  return lane >= delta ? all[lane - delta] : v;
}
LILY_SIMD inline T simd_shuffle_down(T v, ushort delta, int line = __builtin_LINE()) {
  LILY_SIMD_TYPE;
  const uint lane = shim::thread_index_in_simdgroup() + delta;
  const T* all = shim::all(v, line);
  return lane < 32 ? all[lane] : v;
}
LILY_SIMD inline T simd_sum(T v, int line = __builtin_LINE()) {
  LILY_SIMD_TYPE;
  const T* all = shim::all(v, line);
  T t[32];
  for (int i = 0; i < 32; i++) t[i] = all[i];
  for (int half = 16; half > 0; half >>= 1)
    for (int i = 0; i < half; i++) t[i] += t[i + half];
  return t[0];
}
LILY_SIMD inline T simd_max(T v, int line = __builtin_LINE()) {
  LILY_SIMD_TYPE;
  const T* all = shim::all(v, line);
  T m = all[0];
  for (int i = 1; i < 32; i++) m = max(m, all[i]);
  return m;
}
LILY_SIMD inline T simd_min(T v, int line = __builtin_LINE()) {
  LILY_SIMD_TYPE;
  const T* all = shim::all(v, line);
  T m = all[0];
  for (int i = 1; i < 32; i++) m = min(m, all[i]);
  return m;
}
LILY_SIMD inline T simd_prefix_exclusive_sum(T v, int line = __builtin_LINE()) {
  LILY_SIMD_TYPE;
  const T* all = shim::all(v, line);
  T s = T(0);
  for (uint i = 0; i < shim::thread_index_in_simdgroup(); i++) s += all[i];
  return s;
}
inline bool simd_any(bool v, int line = __builtin_LINE()) { return simd_max((uint)v, line) != 0; }
#undef LILY_SIMD
#undef LILY_SIMD_TYPE

// ---- atomics: relaxed, 32 bits

enum memory_order { memory_order_relaxed };
template <class T> struct _atomic {
  T value;
};
typedef _atomic<uint> atomic_uint;
typedef _atomic<int> atomic_int;
// Not traced themselves: they report what they touch, and two of them never race.
#define LILY_ATOMIC_FUNCTION template <class T> __attribute__((noinline, no_sanitize("coverage")))
#define LILY_ATOMIC(SPACE)                                                                         \
  LILY_ATOMIC_FUNCTION T atomic_load_explicit(const volatile SPACE _atomic<T>* p, memory_order) {  \
    shim::check((const void*)(size_t)p, sizeof(T), shim::read | shim::atomic);                     \
    return p->value;                                                                               \
  }                                                                                                \
  LILY_ATOMIC_FUNCTION void atomic_store_explicit(volatile SPACE _atomic<T>* p, T v, memory_order) { \
    shim::check((const void*)(size_t)p, sizeof(T), shim::write | shim::atomic);                    \
    p->value = v;                                                                                  \
  }                                                                                                \
  LILY_ATOMIC_FUNCTION T atomic_fetch_add_explicit(volatile SPACE _atomic<T>* p, T v, memory_order) { \
    shim::check((const void*)(size_t)p, sizeof(T), shim::read | shim::write | shim::atomic);       \
    T old = p->value;                                                                              \
    p->value = old + v;                                                                            \
    return old;                                                                                    \
  }
LILY_ATOMIC(device)
LILY_ATOMIC(threadgroup)
#undef LILY_ATOMIC
#undef LILY_ATOMIC_FUNCTION

// ---- 8x8 matrices: lane l holds two neighbours of one row, spread as Apple's GPUs spread them

template <class T, int Columns, int Rows> struct simdgroup_matrix {
  static_assert(Columns == 8 && Rows == 8, "only 8x8");
  T e[2];
};
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;

namespace shim {
inline uint fragment_row() {
  const uint lane = thread_index_in_simdgroup();
  return ((lane / 4) & 4) + (lane / 2) % 4;
}
inline uint fragment_column() {
  const uint lane = thread_index_in_simdgroup();
  return ((lane / 4) & 2) * 2 + (lane % 2) * 2;
}
inline uint fragment_lane(uint row, uint column) {
  return ((row & 4) << 2) | ((column & 4) << 1) | ((row & 3) << 1) | ((column & 2) >> 1);
}
}  // namespace shim

template <class T, int Columns, int Rows> inline simdgroup_matrix<T, Columns, Rows> make_filled_simdgroup_matrix(T v) {
  simdgroup_matrix<T, Columns, Rows> m;
  m.e[0] = m.e[1] = v;
  return m;
}
#define LILY_MATRIX_MEMORY(SPACE)                                                                              \
  template <class T>                                                                                           \
  inline void simdgroup_load(simdgroup_matrix<T, 8, 8>& m, const SPACE T* p, ulong stride = 8, ulong2 origin = 0, \
                             bool transpose = false, int line = __builtin_LINE()) {                              \
    shim::arrive(line);                                                                                        \
    const uint r = shim::fragment_row(), c = shim::fragment_column();                                          \
    for (uint i = 0; i < 2; i++)                                                                               \
      m.e[i] = transpose ? p[(origin.y + c + i) * stride + origin.x + r] : p[(origin.y + r) * stride + origin.x + c + i]; \
  }                                                                                                            \
  template <class T>                                                                                           \
  inline void simdgroup_store(simdgroup_matrix<T, 8, 8> m, SPACE T* p, ulong stride = 8, ulong2 origin = 0,      \
                              bool transpose = false, int line = __builtin_LINE()) {                             \
    shim::arrive(line);                                                                                        \
    const uint r = shim::fragment_row(), c = shim::fragment_column();                                          \
    for (uint i = 0; i < 2; i++) {                                                                             \
      if (transpose) {                                                                                         \
        p[(origin.y + c + i) * stride + origin.x + r] = m.e[i];                                                \
      } else {                                                                                                 \
        p[(origin.y + r) * stride + origin.x + c + i] = m.e[i];                                                \
      }                                                                                                        \
    }                                                                                                          \
  }
LILY_MATRIX_MEMORY(device)
LILY_MATRIX_MEMORY(threadgroup)
#undef LILY_MATRIX_MEMORY

template <class A, class B>
inline void simdgroup_multiply_accumulate(simdgroup_matrix<float, 8, 8>& d, simdgroup_matrix<A, 8, 8> a,
                                          simdgroup_matrix<B, 8, 8> b, simdgroup_matrix<float, 8, 8> s,
                                          int line = __builtin_LINE()) {
  struct Mine {
    float a[2], b[2];
  } mine = {{(float)a.e[0], (float)a.e[1]}, {(float)b.e[0], (float)b.e[1]}};
  const Mine* all = (const Mine*)shim::exchange(&mine, sizeof mine, line);
  const uint r = shim::fragment_row(), c = shim::fragment_column();
  float d0 = s.e[0], d1 = s.e[1];
  for (uint k = 0; k < 8; k++) {
    const float av = all[shim::fragment_lane(r, k)].a[k & 1];
    const float* bv = all[shim::fragment_lane(k, c)].b;
    d0 = __builtin_fmaf(av, bv[0], d0);
    d1 = __builtin_fmaf(av, bv[1], d1);
  }
  d.e[0] = d0;
  d.e[1] = d1;
}
#endif  // LILY_GPU
}  // namespace metal
#ifdef LILY_GPU
#include "gpu_language.h"
#endif

#define LILY_CONSTRUCTOR(T, ...) metal::shim::make<metal::T>(__VA_ARGS__)
#define uchar4(...) LILY_CONSTRUCTOR(uchar4, __VA_ARGS__)
#define int2(...) LILY_CONSTRUCTOR(int2, __VA_ARGS__)
#define int4(...) LILY_CONSTRUCTOR(int4, __VA_ARGS__)
#define uint2(...) LILY_CONSTRUCTOR(uint2, __VA_ARGS__)
#define uint3(...) LILY_CONSTRUCTOR(uint3, __VA_ARGS__)
#define uint4(...) LILY_CONSTRUCTOR(uint4, __VA_ARGS__)
#define ushort4(...) LILY_CONSTRUCTOR(ushort4, __VA_ARGS__)
#define ulong2(...) LILY_CONSTRUCTOR(ulong2, __VA_ARGS__)
#define float2(...) LILY_CONSTRUCTOR(float2, __VA_ARGS__)
#define float3(...) LILY_CONSTRUCTOR(float3, __VA_ARGS__)
#define float4(...) LILY_CONSTRUCTOR(float4, __VA_ARGS__)
#define bfloat2(...) LILY_CONSTRUCTOR(bfloat2, __VA_ARGS__)
#define bfloat4(...) LILY_CONSTRUCTOR(bfloat4, __VA_ARGS__)

#ifdef LILY_GPU
// Used: written by other threads, which the optimiser does not know.
#define LILY_THREADGROUP_VARIABLE(ID, TYPE, NAME)                                                      \
  __attribute__((used, aligned(16))) static threadgroup char NAME##__memory[sizeof(TYPE)]; \
  threadgroup TYPE& NAME = *(threadgroup TYPE*)NAME##__memory
#else
#define LILY_THREADGROUP_VARIABLE(ID, TYPE, NAME) \
  threadgroup TYPE& NAME = *(threadgroup TYPE*)(metal::size_t)metal::shim::threadgroup_variable(ID, sizeof(TYPE), alignof(TYPE))
#endif
