// Epilogue of family sm90 where the TMA can write D: stmatrix into panels, one box copy each.
#pragma once

#include "fastgemm/device/fused_tile.cuh"
#include "fastgemm/device/mma_sm80.cuh"
#include "fastgemm/device/ptx/barrier.cuh"
#include "fastgemm/device/ptx/convert.cuh"
#include "fastgemm/device/ptx/stmatrix.cuh"
#include "fastgemm/device/ptx/thread.cuh"
#include "fastgemm/device/ptx/tma.cuh"
#include "fastgemm/device/ring_sm90.cuh"
#include "fastgemm/device/swizzle.cuh"

namespace fastgemm {

// A warpgroup's panel of D: 64 of the tile's rows and up to 64 of its columns, of 16 bits, swizzled
// as the TMA reads it; large, since every copy costs the engine time that loads need too. Tiles
// that are not whole panels wide have narrower ones: a box must not reach into the neighbour's
// tile. There are buffers for 128 columns, or for two tiles, so that some are filled while the copy
// engine reads the others; the last copies drain under the next tile's main loop.
//
// Operands swapped: the accumulators hold D transposed, and the panel's rows are the tile's
// columns.
template <int BLOCK_N, bool SWAPPED>
struct StorePanel {
  static constexpr int WIDTH = BLOCK_N % 64 == 0   ? 64
                               : BLOCK_N % 32 == 0 ? 32
                                                   : 16;  // tile columns
  using Layout = SharedLayout<SWAPPED ? WIDTH : 64, SWAPPED ? 64 : WIDTH, true>;
  static constexpr int BUFFERS = 2 * min_of(BLOCK_N, 64) / WIDTH;
};

// Writes alpha * accumulators, or what `fused` makes of them, for the tile rows from `row` and the
// tile columns from `col` of the D that `map` describes. What lies outside of D the copy engine
// leaves out. `buffer`: this warpgroup's panels.
template <class Element, bool SWAPPED, class Fused, int BLOCKS_M, int TILES_N>
FASTGEMM_DEVICE void epilogue_tma(float (&accumulator)[BLOCKS_M][TILES_N][8], const TensorMap& map,
                                  u32 buffer, int row, int col, int batch, float alpha, int& panel,
                                  const Fused& fused) {
  using Panel = StorePanel<TILES_N * 16, SWAPPED>;
  using Layout = typename Panel::Layout;
  const int lane = ptx::thread_index() % WARP_THREADS;
  const int warp = ptx::thread_index() / WARP_THREADS % 4;
  const int named_barrier = 1 + ptx::thread_index() / WARPGROUP_THREADS;
  const bool stores = ptx::thread_index() % WARPGROUP_THREADS == 0;
  constexpr bool ROLLED = Fused::ACTIVE;  // see take_tiles()
#pragma unroll(ROLLED ? 1 : BLOCKS_M)
  for (int i = 0; i < BLOCKS_M; ++i) {
    float (&tiles)[TILES_N][8] = accumulator[ROLLED ? 0 : i];
#pragma unroll(ROLLED ? 1 : TILES_N)
    for (int j = 0; j < TILES_N; j += Panel::WIDTH / 16) {
      const u32 shared = buffer + panel * Layout::BYTES;
      const int first = ROLLED ? 0 : j;
      if constexpr (Fused::ACTIVE)
        fused.template apply<M16n8Accumulators, Panel::WIDTH / 16>(tiles, i * 64, j * 16);
      if (stores) ptx::bulk_wait_group_read<Panel::BUFFERS - 1>();  // this panel has been read,
      ptx::bar_sync(named_barrier, WARPGROUP_THREADS);              // and all know
#pragma unroll
      for (int tile = 0; tile < Panel::WIDTH / 16; ++tile) {
        const float (&sum)[8] = tiles[first + tile];
        u32 pairs[4];  // of the tile's 8x8 quarters: top left, bottom left, top right, bottom right
#pragma unroll
        for (int p = 0; p < 4; ++p)
          pairs[p] = ptx::from_float_x2(Element{}, alpha * sum[2 * p], alpha * sum[2 * p + 1]);
        if constexpr (SWAPPED)
          ptx::stmatrix_x4_trans(shared + Layout::offset(tile * 16 + lane % 8 + lane / 16 * 8,
                                                         2 * warp + lane / 8 % 2),
                                 pairs);
        else
          ptx::stmatrix_x4(shared + Layout::offset(warp * 16 + lane % 16, 2 * tile + lane / 16),
                           pairs);
      }
      ptx::fence_proxy_async();
      ptx::bar_sync(named_barrier, WARPGROUP_THREADS);
      if (stores) {
        const int m = row + i * 64, n = col + j * 16;
        ptx::tma_store_4d(map, shared, SWAPPED ? m : n, SWAPPED ? n : m, 0, batch);
        ptx::bulk_commit_group();
      }
      panel = (panel + 1) % Panel::BUFFERS;
      if constexpr (ROLLED) take_tiles<Panel::WIDTH / 16>(tiles);
    }
    if constexpr (ROLLED && BLOCKS_M == 2)  // in the same way, the second block takes its place
#pragma unroll
      for (int j = 0; j < TILES_N; ++j)
#pragma unroll
        for (int e = 0; e < 8; ++e) tiles[j][e] = accumulator[1][j][e];
  }
}

}  // namespace fastgemm
