// The experts' products of prefill by the tensor operations of Metal 4: experts_expand_tiles and
// experts_contract_tiles of experts.metal with the same arguments, grids and tiles, and other bits.

// Tiles of 64 assignments by 32 outputs of gate and of up; a simdgroup takes 16 assignments.
#define EXPAND_TENSOR(NAME, FORMAT)                                                                                    \
  [[max_total_threads_per_threadgroup(128)]] kernel void NAME(                                                         \
      device const uint* gate_codes [[buffer(0)]], device const bfloat* gate_scales [[buffer(1)]],                     \
      device const bfloat* gate_biases [[buffer(2)]], device const uint* up_codes [[buffer(3)]],                       \
      device const bfloat* up_scales [[buffer(4)]], device const bfloat* up_biases [[buffer(5)]],                      \
      device const bfloat* x [[buffer(6)]], device const uint* offsets [[buffer(7)]],                                  \
      device const uint* tiles [[buffer(8)]], device const uint* order [[buffer(9)]],                                  \
      device bfloat* act [[buffer(10)]], constant ExpertTileParams& p [[buffer(11)]],                                  \
      uint2 group [[threadgroup_position_in_grid]], uint tid [[thread_index_in_threadgroup]],                          \
      uint sg [[simdgroup_index_in_threadgroup]]) {                                                                    \
    threadgroup uint4 memory[TILE_WORDS(EXPERT_TILE_ROWS + 64)];                                                       \
    threadgroup uint source[EXPERT_TILE_ROWS];                                                                         \
    uint first, count;                                                                                                 \
    const ulong expert = tile_expert(offsets, tiles, p, group.y, first, count);                                        \
    if (count == 0) return;                                                                                            \
    if (tid < EXPERT_TILE_ROWS)                                                                                        \
      source[tid] = tid >= count ? NO_ROW : p.experts == 0 ? first + tid : order[first + tid] / p.per_token;           \
    threadgroup_barrier(mem_flags::mem_threadgroup);                                                                   \
    threadgroup bfloat* xs = (threadgroup bfloat*)memory;                                                              \
    threadgroup bfloat* gs = xs + EXPERT_TILE_ROWS * TILE_STRIDE(bfloat);                                              \
    threadgroup bfloat* us = gs + 32 * TILE_STRIDE(bfloat);                                                            \
    const uint output0 = group.x * 32, m = 16 * sg;                                                                    \
    TENSOR_PRODUCT(product, 16, 32, 64, true, multiply_accumulate);                                                    \
    TileRows a = tile_rows(xs + m * TILE_STRIDE(bfloat), 16), g = tile_rows(gs, 32), u = tile_rows(us, 32);            \
    auto gate = product.get_destination_cooperative_tensor<TileRows, TileRows, float>();                               \
    auto up = product.get_destination_cooperative_tensor<TileRows, TileRows, float>();                                 \
    clear(gate);                                                                                                       \
    clear(up);                                                                                                         \
    RowShare<EXPERT_TILE_ROWS> row_share;                                                                              \
    CodeShare<32> gate_share, up_share;                                                                                \
    fetch_rows<EXPERT_TILE_ROWS>(x, source, count, p.columns, 0, tid, row_share);                                             \
    fetch_codes<FORMAT, 32>(gate_codes, gate_scales, gate_biases, expert * p.gate_rows, output0, p.outputs, p.columns, \
                            p.group_size, 0, tid, gate_share);                                                         \
    fetch_codes<FORMAT, 32>(up_codes, up_scales, up_biases, expert * p.up_rows, output0, p.outputs, p.columns,         \
                            p.group_size, 0, tid, up_share);                                                           \
    for (uint k = 0; k < p.columns; k += 64) {                                                                         \
      threadgroup_barrier(mem_flags::mem_threadgroup);                                                                 \
      put_rows<EXPERT_TILE_ROWS>(row_share, count, xs, tid);                                                                  \
      put_codes<FORMAT, 32>(gate_share, gs, tid);                                                                      \
      put_codes<FORMAT, 32>(up_share, us, tid);                                                                        \
      threadgroup_barrier(mem_flags::mem_threadgroup);                                                                 \
      if (k + 64 < p.columns) {                                                                                        \
        fetch_rows<EXPERT_TILE_ROWS>(x, source, count, p.columns, k + 64, tid, row_share);                                    \
        fetch_codes<FORMAT, 32>(gate_codes, gate_scales, gate_biases, expert * p.gate_rows, output0, p.outputs,        \
                                p.columns, p.group_size, k + 64, tid, gate_share);                                     \
        fetch_codes<FORMAT, 32>(up_codes, up_scales, up_biases, expert * p.up_rows, output0, p.outputs, p.columns,     \
                                p.group_size, k + 64, tid, up_share);                                                  \
      }                                                                                                                \
      if (m < count) {                                                                                                 \
        product.run(a, g, gate);                                                                                       \
        product.run(a, u, up);                                                                                         \
      }                                                                                                                \
    }                                                                                                                  \
    UNROLL for (ushort i = 0; i < gate.get_capacity(); i++) {                                                          \
      if (!gate.is_valid_element(i)) continue;                                                                         \
      const auto at = gate.get_multidimensional_index(i);                                                              \
      const uint row = m + uint(at[1]), output = output0 + uint(at[0]);                                                \
      if (row < count && output < p.outputs)                                                                           \
        act[ulong(first + row) * p.outputs + output] = bfloat(silu(gate[i]) * up[i]);                                  \
    }                                                                                                                  \
  }
EXPAND_TENSOR(experts_expand_tensor_q4, AFFINE_4)
EXPAND_TENSOR(experts_expand_tensor_q8, AFFINE_8)

// Tiles of 64 assignments by 64 outputs; a simdgroup takes 16 assignments and reads their activations where they lie.
#define CONTRACT_TENSOR(NAME, FORMAT)                                                                                  \
  [[max_total_threads_per_threadgroup(128)]] kernel void NAME(                                                         \
      device const uint* codes [[buffer(0)]], device const bfloat* scales [[buffer(1)]],                               \
      device const bfloat* biases [[buffer(2)]], device const bfloat* act [[buffer(3)]],                               \
      device const uint* offsets [[buffer(4)]], device const uint* tiles [[buffer(5)]],                                \
      device const uint* order [[buffer(6)]], device bfloat* contributions [[buffer(7)]],                              \
      constant ExpertTileParams& p [[buffer(8)]], uint2 group [[threadgroup_position_in_grid]],                        \
      uint tid [[thread_index_in_threadgroup]], uint sg [[simdgroup_index_in_threadgroup]]) {                          \
    threadgroup uint4 memory[TILE_WORDS(64)];                                                                          \
    threadgroup bfloat* weights = (threadgroup bfloat*)memory;                                                         \
    uint first, count;                                                                                                 \
    const ulong expert = tile_expert(offsets, tiles, p, group.y, first, count);                                        \
    if (count == 0) return;                                                                                            \
    const uint output0 = group.x * 64, m = 16 * sg;                                                                    \
    const uint rows = m < count ? min(16u, count - m) : 0u;                                                            \
    DeviceRows a_rows =                                                                                                \
        device_rows(act + ulong(first + (rows == 0 ? 0 : m)) * p.columns, p.columns, rows);                            \
    TileRows b = tile_rows(weights, 64);                                                                               \
    TENSOR_PRODUCT(product, 16, 64, 64, true, multiply_accumulate);                                                    \
    auto a = a_rows.slice(0, 0);                                                                                       \
    auto acc = product.get_destination_cooperative_tensor<decltype(a), TileRows, float>();                             \
    clear(acc);                                                                                                        \
    CodeShare<64> share;                                                                                               \
    fetch_codes<FORMAT, 64>(codes, scales, biases, expert * p.gate_rows, output0, p.outputs, p.columns,                \
                            p.group_size, 0, tid, share);                                                              \
    for (uint k = 0; k < p.columns; k += 64) {                                                                         \
      threadgroup_barrier(mem_flags::mem_threadgroup);                                                                 \
      put_codes<FORMAT, 64>(share, weights, tid);                                                                      \
      threadgroup_barrier(mem_flags::mem_threadgroup);                                                                 \
      if (k + 64 < p.columns)                                                                                          \
        fetch_codes<FORMAT, 64>(codes, scales, biases, expert * p.gate_rows, output0, p.outputs, p.columns,            \
                                p.group_size, k + 64, tid, share);                                                     \
      auto a_k = a_rows.slice(int(k), 0);                                                                              \
      if (rows > 0) product.run(a_k, b, acc);                                                                          \
    }                                                                                                                  \
    UNROLL for (ushort i = 0; i < acc.get_capacity(); i++) {                                                           \
      if (!acc.is_valid_element(i)) continue;                                                                          \
      const auto at = acc.get_multidimensional_index(i);                                                               \
      const uint row = uint(at[1]), output = output0 + uint(at[0]);                                                    \
      if (row >= rows || output >= p.outputs) continue;                                                                \
      const uint to = p.experts == 0 ? first + m + row : order[first + m + row];                                       \
      contributions[ulong(to) * p.outputs + output] = bfloat(acc[i]);                                                  \
    }                                                                                                                  \
  }
CONTRACT_TENSOR(experts_contract_tensor_q4, AFFINE_4)
CONTRACT_TENSOR(experts_contract_tensor_q8, AFFINE_8)
