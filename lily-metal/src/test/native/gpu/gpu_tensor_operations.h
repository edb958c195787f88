// Products of tensors for an NVIDIA GPU: a simdgroup's tile as 16 x 8 pieces of the tensor cores, bf16 operands, fp32
// sums. Included by metal_tensor_operations.h; sm_80 and newer.
//
// The operation may take the columns in any order, so lane l takes 8 neighbouring ones, 8 (l % 4) .. + 7 of 32, in one
// load: rows must be 16-byte aligned.
#pragma once

namespace mpp::tensor_ops {
template <int M, int N, class T, class Left, class Right> struct result_tensor {
  static_assert(M % 16 == 0 && N % 8 == 0, "tiles of whole 16 x 8 pieces");
  static constexpr int PIECES = N / 8;  // of 8 columns, in a row of pieces
  float slots[M * N / 32];

  static int lane() { return (int)metal::shim::thread_index_in_simdgroup(); }
  metal::ushort get_capacity() const { return M * N / 32; }
  bool is_valid_element(metal::ushort) const { return true; }
  metal::array<int, 2> get_multidimensional_index(metal::ushort i) const {
    const int piece = i / 4;
    return {{piece % PIECES * 8 + lane() % 4 * 2 + i % 2, piece / PIECES * 16 + lane() / 4 + i % 4 / 2 * 8}};
  }
  float& operator[](metal::ushort i) { return slots[i]; }
};

// 8 columns of a row, zero where the tensor has none.
template <class E, class X, class K> inline metal::uint4 eight(const metal::tensor<E, X, K>& t, int row, int column) {
  using word = typename metal::shim::in_space<E>::template with<metal::uint4>;
  if (row >= t.rows || column >= t.columns) return metal::uint4{0u, 0u, 0u, 0u};
  return *(word*)(t.memory + (long)row * t.stride + column);
}

inline void multiply_piece(float* d, metal::uint a0, metal::uint a1, metal::uint a2, metal::uint a3, metal::uint b0,
                           metal::uint b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// Rows k(0) .. k(7) of 8 columns, as the B operand takes them: row 2 (l % 4) of column l / 4 and the row after it.
template <class E, class X, class K, class Row> inline metal::uint upright(const metal::tensor<E, X, K>& t, int column, Row k) {
  using word = typename metal::shim::in_space<E>::template with<metal::uint>;
  const int lane = (int)metal::shim::thread_index_in_simdgroup(), row = k(lane / 4);
  const metal::uint pair = row < t.rows ? *(word*)(t.memory + (long)row * t.stride + column + lane % 4 * 2) : 0u;
  return metal::shim::transposed(pair);
}

template <matmul2d_descriptor D, class Left, class Right, class T, class L, class R>
inline void run_product(const Left& left, const Right& right, result_tensor<D.m, D.n, T, L, R>& out) {
  static_assert(D.k % 32 == 0, "32 columns at a time");
  const int lane = out.lane(), row = lane / 4;
  if (D.matmul_mode == matmul2d_descriptor::mode::multiply)
    for (float& slot : out.slots) slot = 0.0f;
  for (int k = 0; k < D.k; k += 32) {
    const int column = k + lane % 4 * 8;
    metal::uint4 low[D.m / 16], high[D.m / 16];
    for (int i = 0; i < D.m / 16; i++) {
      low[i] = eight(left, 16 * i + row, column);
      high[i] = eight(left, 16 * i + 8 + row, column);
    }
    for (int j = 0; j < D.n / 8; j++) {
      metal::uint4 b;
      if (D.transpose_right) {
        b = eight(right, 8 * j + row, column);
      } else {
        // The columns in which lanes hold the left operand.
        for (int word = 0; word < 4; word++)
          b[word] = upright(right, 8 * j, [=](int r) { return k + r / 2 * 8 + word * 2 + r % 2; });
      }
      for (int i = 0; i < D.m / 16; i++) {
        float* d = out.slots + 4 * (i * (D.n / 8) + j);
        multiply_piece(d, low[i].x, high[i].x, low[i].y, high[i].y, b.x, b.y);
        multiply_piece(d, low[i].z, high[i].z, low[i].w, high[i].w, b.z, b.w);
      }
    }
  }
}
}  // namespace mpp::tensor_ops
