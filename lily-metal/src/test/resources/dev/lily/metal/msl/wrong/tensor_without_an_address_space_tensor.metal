// refused: in device or threadgroup memory
#include <metal_stdlib>
#include <metal_tensor>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;
using namespace mpp::tensor_ops;
kernel void k(device bfloat* x [[buffer(0)]], device bfloat* w [[buffer(1)]], device float* y [[buffer(2)]]) {
  constexpr auto shape = matmul2d_descriptor(16, 32, 64, false, true, false);
  matmul2d<shape, execution_simdgroup> product;
  typedef dextents<int32_t, 2> Size;
  bfloat values[64 * 16];
  tensor<bfloat, Size, tensor_inline> z(values, Size(64, 16));
  tensor<device bfloat, Size, tensor_inline> a(x, Size(64, 16)), b(w, Size(64, 32));
  tensor<device float, Size, tensor_inline> out(y, Size(32, 16));
  auto acc = product.get_destination_cooperative_tensor<decltype(a), decltype(b), float>();
  product.run(a, b, acc);
  acc.store(out);
}
