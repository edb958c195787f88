// Matrix times many rows (prefill) by the tensor operations of Metal 4, for GPUs that have hardware for them. The same
// operands and grid as the gemm kernels of matmul.metal, and other bits: a device uses these for all row counts of a
// matrix, or not at all.

struct GemmParams {
  uint columns;
  uint group_size;
  uint outputs;
  uint rows;
};

// out[r] = matrix * x[r]. codes, scales, biases; x [rows, columns] bf16; out [rows, outputs] T.
// Tiles of 64 rows by 64 outputs, a simdgroup 32 by 32; the rows are read where they lie, the weights from threadgroup
// memory. Every product is of one shape, so that a row's sums do not depend on where it stands.
// Grid (ceil(outputs / 64), ceil(rows / 64)) of 128 threads.
#define GEMM_TENSOR(NAME, FORMAT, T)                                                                            \
  [[max_total_threads_per_threadgroup(128)]] kernel void NAME(                                                  \
      device const uint* codes [[buffer(0)]], device const bfloat* scales [[buffer(1)]],                        \
      device const bfloat* biases [[buffer(2)]], device const bfloat* x [[buffer(3)]],                          \
      device T* out [[buffer(4)]], constant GemmParams& p [[buffer(5)]],                                        \
      uint2 group [[threadgroup_position_in_grid]], uint tid [[thread_index_in_threadgroup]],                   \
      uint sg [[simdgroup_index_in_threadgroup]]) {                                                             \
    threadgroup uint4 memory[TILE_WORDS(64)];                                                                   \
    threadgroup bfloat* weights = (threadgroup bfloat*)memory;                                                  \
    const uint row0 = group.y * 64 + sg / 2 * 32, first = group.x * 64, n = sg % 2 * 32;                        \
    const uint rows = row0 < p.rows ? min(32u, p.rows - row0) : 0u;                                             \
    DeviceRows a_rows = device_rows(x + ulong(rows == 0 ? 0 : row0) * p.columns, p.columns, rows);              \
    TileRows b = tile_rows(weights + n * TILE_STRIDE(bfloat), 32);                                              \
    TENSOR_PRODUCT(product, 32, 32, 64, true, multiply_accumulate);                                             \
    auto a = a_rows.slice(0, 0);                                                                                \
    auto acc = product.get_destination_cooperative_tensor<decltype(a), TileRows, float>();                      \
    clear(acc);                                                                                                 \
    CodeShare<64> share;                                                                                        \
    fetch_codes<FORMAT, 64>(codes, scales, biases, 0, first, p.outputs, p.columns, p.group_size, 0, tid, share); \
    for (uint k = 0; k < p.columns; k += 64) {                                                                  \
      threadgroup_barrier(mem_flags::mem_threadgroup);                                                          \
      put_codes<FORMAT, 64>(share, weights, tid);                                                               \
      threadgroup_barrier(mem_flags::mem_threadgroup);                                                          \
      if (k + 64 < p.columns)                                                                                   \
        fetch_codes<FORMAT, 64>(codes, scales, biases, 0, first, p.outputs, p.columns, p.group_size, k + 64,    \
                                tid, share);                                                                    \
      auto a_k = a_rows.slice(int(k), 0);                                                                       \
      if (rows > 0) product.run(a_k, b, acc);                                                                   \
    }                                                                                                           \
    UNROLL for (ushort i = 0; i < acc.get_capacity(); i++) {                                                    \
      if (!acc.is_valid_element(i)) continue;                                                                   \
      const auto at = acc.get_multidimensional_index(i);                                                        \
      const uint row = uint(at[1]), output = first + n + uint(at[0]);                                           \
      if (row < rows && output < p.outputs) out[ulong(row0 + row) * p.outputs + output] = T(acc[i]);            \
    }                                                                                                           \
  }
GEMM_TENSOR(gemm_tensor_q4_bf16, AFFINE_4, bfloat)
GEMM_TENSOR(gemm_tensor_q4_f32, AFFINE_4, float)
GEMM_TENSOR(gemm_tensor_q8_bf16, AFFINE_8, bfloat)
GEMM_TENSOR(gemm_tensor_q8_f32, AFFINE_8, float)
