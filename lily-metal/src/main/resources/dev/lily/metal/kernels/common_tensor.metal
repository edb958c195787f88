// Put after common.metal before the sources that use Metal 4's tensor operations, which are compiled as MSL 4.0. On GPUs
// without hardware for them (before family 10) they would run as ordinary code, slower than simdgroup_matrix.
#include <metal_tensor>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>

// Rows of operands; columns count first, in extents as in slices. Operations take no const elements.
typedef tensor<device bfloat, dextents<int32_t, 2>, tensor_inline> DeviceRows;
typedef tensor<threadgroup bfloat, dextents<int32_t, 2>, tensor_inline> TileRows;

// At least one row, so that there is a tensor where there are none to read.
static inline DeviceRows device_rows(device const bfloat* from, uint columns, uint rows) {
  return DeviceRows((device bfloat*)from, dextents<int32_t, 2>(int(columns), int(max(rows, 1u))));
}
// 64 columns of a tile.
static inline TileRows tile_rows(threadgroup bfloat* from, int rows) {
  return TileRows(from, dextents<int32_t, 2>(64, rows), array<int32_t, 2>({1, int(TILE_STRIDE(bfloat))}));
}

// NAME: a simdgroup's product of M rows by N outputs, K columns at a time, MODE multiply or multiply_accumulate (on top of
// what is there). IS_TRANSPOSED: the right operand's rows are outputs.
#define TENSOR_PRODUCT(NAME, M, N, K, IS_TRANSPOSED, MODE)                                        \
  constexpr auto NAME##_shape = mpp::tensor_ops::matmul2d_descriptor(                              \
      M, N, K, false, IS_TRANSPOSED, false, mpp::tensor_ops::matmul2d_descriptor::mode::MODE);     \
  mpp::tensor_ops::matmul2d<NAME##_shape, execution_simdgroup> NAME

template <typename Sums>
static inline void clear(thread Sums& sums) {
  UNROLL for (ushort i = 0; i < sums.get_capacity(); i++)
    if (sums.is_valid_element(i)) sums[i] = 0.0f;
}
