// Epilogue of family sm90 for a D that the TMA can write: stmatrix into shared memory, one box copy
// a panel.
#pragma once

#include "fastgemm/device/mma_sm80.cuh"
#include "fastgemm/device/ptx/barrier.cuh"
#include "fastgemm/device/ptx/convert.cuh"
#include "fastgemm/device/ptx/stmatrix.cuh"
#include "fastgemm/device/ptx/thread.cuh"
#include "fastgemm/device/ptx/tma.cuh"
#include "fastgemm/device/swizzle.cuh"

namespace fastgemm {

// A warp's panel of D: rows of 16-bit elements, swizzled as the TMA reads it. Two of them, so that
// one is filled while the copy engine reads the other; the last copies drain under the next tile's
// main loop.
//
// Rows of D contiguous: 16 rows of 64 columns; tiles that are not whole panels wide have narrower
// ones, since a box must not reach into the neighbour's tile. Operands swapped (the accumulators
// hold D transposed): a column of the accumulators is a row of D, and the panel holds 16 of them,
// 16 elements each.
template <int BLOCK_N, bool SWAPPED>
using StorePanel = SharedLayout<16,
                                SWAPPED             ? 16
                                : BLOCK_N % 64 == 0 ? 64
                                : BLOCK_N % 32 == 0 ? 32
                                                    : 16,
                                true>;
constexpr int STORE_PANELS = 2;

// Writes alpha * accumulators for the tile rows from `row` and the tile columns from `col` of the D
// that `map` describes. What lies outside of D the copy engine leaves out. `buffer`: this warp's
// panels.
template <class Element, bool SWAPPED, int ROW_STEP, int TILES_M, int TILES_N>
FASTGEMM_DEVICE void epilogue_tma(const float (&accumulator)[TILES_M][TILES_N][8],
                                  const TensorMap& map, u32 buffer, int row, int col, int batch,
                                  float alpha) {
  using Layout = StorePanel<TILES_N * 16, SWAPPED>;
  constexpr int PANEL_TILES = Layout::COLS / 16;
  const int lane = ptx::thread_index() % WARP_THREADS;
  int panel = 0;
#pragma unroll
  for (int i = 0; i < TILES_M; ++i)
#pragma unroll
    for (int j = 0; j < TILES_N; j += PANEL_TILES) {
      const u32 shared = buffer + panel * Layout::BYTES;
      ptx::bulk_wait_group_read<STORE_PANELS - 1>();  // lane 0 knows that this panel has been read,
      ptx::bar_warp_sync();                           // and so do the others
#pragma unroll
      for (int tile = 0; tile < PANEL_TILES; ++tile) {
        const float (&sum)[8] = accumulator[i][j + tile];
        u32 pairs[4];  // of the tile's 8x8 quarters: top left, bottom left, top right, bottom right
#pragma unroll
        for (int p = 0; p < 4; ++p)
          pairs[p] = ptx::from_float_x2(Element{}, alpha * sum[2 * p], alpha * sum[2 * p + 1]);
        if constexpr (SWAPPED)
          ptx::stmatrix_x4_trans(shared + Layout::offset(lane % 8 + lane / 16 * 8, lane / 8 % 2),
                                 pairs);
        else
          ptx::stmatrix_x4(shared + Layout::offset(lane % 16, 2 * tile + lane / 16), pairs);
      }
      ptx::fence_proxy_async();
      ptx::bar_warp_sync();
      if (lane == 0) {
        const int m = row + i * ROW_STEP, n = col + j * 16;
        ptx::tma_store_3d(map, shared, SWAPPED ? m : n, SWAPPED ? n : m, batch);
        ptx::bulk_commit_group();
      }
      panel = (panel + 1) % STORE_PANELS;
    }
}

}  // namespace fastgemm
