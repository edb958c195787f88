// The part of Metal 4's tensors and of the system's mpp::tensor_ops that Lily's kernels use, for stock clang; comes
// after metal_language.h. Stricter than the system where that costs nothing: the CPU run has an odd layout of
// cooperative tensors, elements begin as NaN, and some of a thread's elements are not valid.
#pragma once

namespace metal {
typedef int int32_t;
template <class T, size_t N> struct array {
  T elements[N];
  constexpr const T& operator[](size_t i) const { return elements[i]; }
};

constexpr size_t dynamic_extent = (size_t)-1;
template <class Index, size_t Rank> struct dextents {
  static_assert(Rank == 2, "only tensors of two dimensions");
  Index size[2];
  constexpr dextents(Index columns, Index rows) : size{columns, rows} {}
};

struct tensor_inline {};

namespace shim {
template <class T> struct in_space {
  static constexpr bool is_memory = false;
};
template <class T> struct in_space<device T> {
  static constexpr bool is_memory = true;
  using element = T;
  template <class U> using with = device U;
};
template <class T> struct in_space<threadgroup T> {
  static constexpr bool is_memory = true;
  using element = T;
  template <class U> using with = threadgroup U;
};
template <class A, class B> constexpr bool is_same = false;
template <class A> constexpr bool is_same<A, A> = true;
}  // namespace shim

// A view of memory. Extents and strides count columns first; a slice ends where its tensor ends.
template <class Element, class Extents, class Kind> struct tensor;
template <class Element> struct tensor<Element, dextents<int, 2>, tensor_inline> {
  static_assert(shim::in_space<Element>::is_memory, "a tensor is in device or threadgroup memory");
  using element_type = typename shim::in_space<Element>::element;
  static_assert(!shim::is_same<element_type, const float> && !shim::is_same<element_type, const bfloat>,
                "an operand of matmul2d has no const elements");
  Element* memory;
  int columns, rows, stride;

  tensor(Element* memory, dextents<int, 2> extents)
      : memory(memory), columns(extents.size[0]), rows(extents.size[1]), stride(extents.size[0]) {}
  tensor(Element* memory, dextents<int, 2> extents, array<int, 2> strides)
      : memory(memory), columns(extents.size[0]), rows(extents.size[1]), stride(strides[1]) {}
  tensor slice(int column, int row) const {
    tensor part = *this;
    part.memory = memory + (long)row * stride + column;
    part.columns = max(0, columns - column);
    part.rows = max(0, rows - row);
    return part;
  }
};

template <int N> struct execution_simdgroups {
  static_assert(N == 1, "only operations of one simdgroup");
};
typedef execution_simdgroups<1> execution_simdgroup;

namespace shim {
template <class T> struct operand {
  static constexpr bool is_tensor = false;
};
template <class E, class X, class K> struct operand<tensor<E, X, K>> {
  static constexpr bool is_tensor = true;
  using element = typename tensor<E, X, K>::element_type;
};

#ifndef LILY_GPU
// Reads `count` elements from one row, zero where the tensor has none; what is read is checked.
template <class Tensor>
__attribute__((no_sanitize("coverage"))) inline void read_row(const Tensor& t, int row, int column, int count, float* to) {
  const int real = row < t.rows ? max(0, min(count, t.columns - column)) : 0;
  for (int i = real; i < count; i++) to[i] = 0.0f;
  if (real == 0) return;
  const auto* from = (const typename Tensor::element_type*)(size_t)(t.memory + (long)row * t.stride + column);
  check(from, (uint)(real * sizeof *from), read);
  for (int i = 0; i < real; i++) to[i] = (float)from[i];
}
#endif
}  // namespace shim
}  // namespace metal

namespace mpp::tensor_ops {
struct matmul2d_descriptor {
  enum class mode { multiply, multiply_accumulate };
  int m, n, k;
  bool transpose_left, transpose_right, relaxed_precision;
  mode matmul_mode;
  constexpr matmul2d_descriptor(int m, int n, int k = (int)metal::dynamic_extent, bool transpose_left = false,
                                bool transpose_right = false, bool relaxed_precision = false,
                                mode matmul_mode = mode::multiply)
      : m(m), n(n), k(k), transpose_left(transpose_left), transpose_right(transpose_right),
        relaxed_precision(relaxed_precision), matmul_mode(matmul_mode) {}
};

#ifdef LILY_GPU
template <int M, int N, class T, class Left, class Right> struct result_tensor;
template <matmul2d_descriptor D, class Left, class Right, class T, class L, class R>
inline void run_product(const Left& left, const Right& right, result_tensor<D.m, D.n, T, L, R>& out);
#else
// Elements of an M x N result spread over 32 lanes, to which runs of 4 columns are dealt in turn. A lane has one slot
// more than it needs; which one differs from lane to lane.
template <int M, int N, class T, class Left, class Right> struct result_tensor {
  static_assert(M % 8 == 0 && N % 8 == 0, "tiles of whole 8 x 8 blocks");
  static constexpr int PER_LANE = M * N / 32;
  T slots[PER_LANE + 1];

  result_tensor() {
    for (T& slot : slots) slot = T(__builtin_nanf(""));
  }
  static int lane() { return (int)metal::shim::thread_index_in_simdgroup(); }
  static int surplus() { return lane() % (PER_LANE + 1); }
  metal::ushort get_capacity() const { return PER_LANE + 1; }
  bool is_valid_element(metal::ushort i) const { return (int)i != surplus(); }
  // Column, then row.
  metal::array<int, 2> get_multidimensional_index(metal::ushort i) const {
    const int e = place((int)i);
    return {{e % N, e / N}};
  }
  T& operator[](metal::ushort i) { return slots[i]; }
  static int place(int slot) {
    const int own = slot - (slot > surplus());
    return ((own / 4 * 32 + lane()) * 4 + own % 4) % (M * N);
  }
  template <class To> void store(To to) const {
    for (int i = 0; i <= PER_LANE; i++) {
      if (i == surplus()) continue;
      const int e = place(i), column = e % N, row = e / N;
      if (row < to.rows && column < to.columns)
        to.memory[(long)row * to.stride + column] = (typename To::element_type)slots[i];
    }
  }
};

template <matmul2d_descriptor D, class Left, class Right, class T, class L, class R>
__attribute__((no_sanitize("coverage"))) inline void run_product(const Left& left, const Right& right,
                                                                 result_tensor<D.m, D.n, T, L, R>& out) {
  constexpr int PER_LANE = D.m * D.n / 32;
  for (int own = 0; own < PER_LANE; own += 4) {
    const int first = own < out.surplus() ? own : own + 1;
    const int e = out.place(first), column = e % D.n, row = e / D.n;
    float a[D.k], b[4][D.k];
    metal::shim::read_row(left, row, 0, D.k, a);
    if (D.transpose_right) {
      for (int j = 0; j < 4; j++) metal::shim::read_row(right, column + j, 0, D.k, b[j]);
    } else {
      for (int k = 0; k < D.k; k++) {
        float four[4];
        metal::shim::read_row(right, k, column, 4, four);
        for (int j = 0; j < 4; j++) b[j][k] = four[j];
      }
    }
    for (int j = 0; j < 4; j++) {
      int slot = own + j;
      if (slot >= out.surplus()) slot++;
      float sum = D.matmul_mode == matmul2d_descriptor::mode::multiply ? 0.0f : (float)out.slots[slot];
      for (int k = 0; k < D.k; k++) sum = __builtin_fmaf(a[k], b[j][k], sum);
      out.slots[slot] = (T)sum;
    }
  }
}
#endif

template <matmul2d_descriptor D, class Scope> struct matmul2d {
  static_assert(D.m % 16 == 0 || D.n % 16 == 0, "at least one of M or N must be a multiple of 16");
  static_assert(D.k > 0, "only operations of a fixed K");
  static_assert(!D.transpose_left, "only left operands as they lie in memory");

  template <class Left, class Right, class T> result_tensor<D.m, D.n, T, Left, Right> get_destination_cooperative_tensor() const {
    static_assert(metal::shim::operand<Left>::is_tensor && metal::shim::operand<Right>::is_tensor,
                  "a destination is asked for by the types of the operands, not of their elements");
    return {};
  }

  // A simdgroup's collective; orders no memory.
  template <class Left, class Right, class T, class L, class R>
  void run(const Left& left, const Right& right, result_tensor<D.m, D.n, T, L, R>& out,
           int line = __builtin_LINE()) const {
    static_assert(metal::shim::is_same<Left, L> && metal::shim::is_same<Right, R>,
                  "input types must match cooperative tensor types");
    static_assert(metal::shim::is_same<typename Left::element_type, typename Right::element_type>,
                  "only operands of one element type");
#ifndef LILY_GPU
    metal::shim::exchange(&line, sizeof line, line);
#endif
    run_product<D>(left, right, out);
  }
};
}  // namespace mpp::tensor_ops
#ifdef LILY_GPU
#include "gpu_tensor_operations.h"
#endif
