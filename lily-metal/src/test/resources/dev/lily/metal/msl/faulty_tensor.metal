// Kernels that compile and are wrong when they run, but for the first.
#include <metal_stdlib>
#include <metal_tensor>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;
using namespace mpp::tensor_ops;

typedef dextents<int32_t, 2> Size;
typedef tensor<device bfloat, Size, tensor_inline> DeviceRows;
typedef tensor<threadgroup bfloat, Size, tensor_inline> TileRows;

// y [16, 32] = x [rows, 64] times w [32, 64], from threadgroup memory.
#define PRODUCT(NAME, ROWS, CLEAR, BARRIER, CONDITION, VALID)                                                 \
  kernel void NAME(device const bfloat* x [[buffer(0)]], device const bfloat* w [[buffer(1)]],                \
                   device float* y [[buffer(2)]], uint lane [[thread_index_in_simdgroup]]) {                  \
    threadgroup bfloat tile[32 * 64];                                                                         \
    for (uint i = lane; i < 32 * 64; i += 32) tile[i] = w[i];                                                 \
    BARRIER;                                                                                                  \
    constexpr auto shape = mpp::tensor_ops::matmul2d_descriptor(                                              \
        16, 32, 64, false, true, false, mpp::tensor_ops::matmul2d_descriptor::mode::multiply_accumulate);     \
    mpp::tensor_ops::matmul2d<shape, execution_simdgroup> product;                                            \
    DeviceRows a((device bfloat*)x, Size(64, ROWS));                                                          \
    TileRows b(tile, Size(64, 32));                                                                           \
    auto acc = product.get_destination_cooperative_tensor<DeviceRows, TileRows, float>();                     \
    for (ushort i = 0; CLEAR && i < acc.get_capacity(); i++)                                                  \
      if (acc.is_valid_element(i)) acc[i] = 1.0f;                                                             \
    if (CONDITION) product.run(a, b, acc);                                                                    \
    for (ushort i = 0; i < acc.get_capacity(); i++) {                                                         \
      if (VALID && !acc.is_valid_element(i)) continue;                                                        \
      const auto at = acc.get_multidimensional_index(i);                                                      \
      y[at[1] * 32 + at[0]] = acc[i];                                                                         \
    }                                                                                                         \
  }
PRODUCT(multiplies, 13, true, threadgroup_barrier(mem_flags::mem_threadgroup), true, true)
PRODUCT(reads_rows_that_are_not_there, 16, true, threadgroup_barrier(mem_flags::mem_threadgroup), true, true)
PRODUCT(adds_to_what_was_never_set, 13, false, threadgroup_barrier(mem_flags::mem_threadgroup), true, true)
PRODUCT(multiplies_without_a_barrier, 13, true, , true, true)
PRODUCT(multiplies_by_half, 13, true, threadgroup_barrier(mem_flags::mem_threadgroup), lane < 16, true)
PRODUCT(stores_what_is_not_valid, 13, true, threadgroup_barrier(mem_flags::mem_threadgroup), true, false)
