// The parts that both passes for heads of 128 share. A swizzled row of a tile has 128 bytes, so a
// tile is two panels of 64 columns, one behind the other.
#pragma once

#include "src/ops/attention/hopper/block.cuh"

namespace tally::train::cuda::hopper {

constexpr int panels = wide_head_dim / head_dim;
constexpr int panel_bytes = tile_bytes, wide_bytes = panels * panel_bytes;
constexpr int panel_step = panel_bytes >> 4;  // from panel to panel in a description

// A tile whose rows go along the sums' columns: all 128 of a row's values for wgmma's N or M.
__device__ inline uint64_t wide_columns(uint32_t address, int bytes_a_panel = panel_bytes) {
  return wgmma_tile(address) + (static_cast<uint64_t>((bytes_a_panel >> 4) - 1) << 16);
}

// sums[64, 128] = a b^T over a head's 128 values, both with rows along them.
template <typename T>
__device__ __forceinline__ void multiply_wide_rows(float (&sums)[64], uint32_t a, uint32_t b) {
  const uint64_t a_tile = wgmma_tile(a), b_tile = wgmma_tile(b);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int at = i / 4 * panel_step + i % 4 * 2;
    Wgmma<T>::scores(sums, a_tile + at, b_tile + at, i > 0);
  }
}

// A block's rows of a head, at `column` of `map`.
__device__ inline void copy_wide(uint32_t to, const CUtensorMap& map, int column, int row,
                                 uint32_t barrier) {
#pragma unroll
  for (int i = 0; i < panels; ++i)
    copy_box(to + i * panel_bytes, map, column + i * head_dim, row, barrier);
}

}  // namespace tally::train::cuda::hopper
