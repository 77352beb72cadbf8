// A fused epilogue on accumulators in registers, before they leave by stmatrix and the TMA.
#pragma once

#include "fastgemm/device/epilogue_operands.cuh"
#include "fastgemm/device/params.cuh"
#include "fastgemm/device/ptx/thread.cuh"
#include "fastgemm/device/raster.cuh"

namespace fastgemm {

// Drops the first TAKEN tiles, so that those behind them become the first. A loop over panels that
// always takes the first stays a loop although registers cannot be indexed: unrolled, the code of
// an epilogue would be there many times, at a multiple of the compile time. The moves cost less
// than a tenth of what they move over.
template <int TAKEN, int TILES_N>
FASTGEMM_DEVICE void take_tiles(float (&tiles)[TILES_N][8]) {
#pragma unroll
  for (int j = TAKEN; j < TILES_N; ++j)
#pragma unroll
    for (int e = 0; e < 8; ++e) tiles[j - TAKEN][e] = tiles[j][e];
}

// The block tile that a warpgroup finishes from its row and column on; of them the warp has 16 rows
// of every 64.
template <class Config>
struct FusedTile {
  using Epilogue = typename Config::Epilogue;
  static constexpr bool ACTIVE = Epilogue::ACTIVE;
  Epilogue epilogue;
  int warp_row, first_col;
  int rows_left, cols_left;  // of the tile, those that exist
  float alpha;

  FASTGEMM_DEVICE FusedTile(const GemmParams& p, const TileIndex& index, int first_row,
                            int first_col)
      : epilogue(epilogue_at<Epilogue>(
            p, {index.batch, i64(index.m) * Config::BLOCK_M, i64(index.n) * Config::BLOCK_N})),
        warp_row(first_row + ptx::thread_index() / WARP_THREADS % 4 * 16),
        first_col(first_col),
        rows_left(static_cast<int>(
            min_of<i64>(p.m - i64(index.m) * Config::BLOCK_M, first_row + Config::WARP_M))),
        cols_left(
            static_cast<int>(min_of<i64>(p.n - i64(index.n) * Config::BLOCK_N, Config::BLOCK_N))),
        alpha(p.alpha) {}

  // Finishes, in place, COUNT 16 x 16 tiles beside each other, `row` rows below the warp's first.
  template <class Mma, int COUNT>
  FASTGEMM_DEVICE void apply(float (*tiles)[8], int row, int col) const {
    const int lane = ptx::thread_index() % WARP_THREADS;
#pragma unroll
    for (int j = 0; j < COUNT; ++j)
#pragma unroll
      for (int pair = 0; pair < 4; ++pair) {
        const int m = warp_row + row + Mma::row(lane, pair);
        const int n = first_col + col + j * 16 + Mma::col(lane, pair);
        float value[2] = {alpha * tiles[j][2 * pair], alpha * tiles[j][2 * pair + 1]};
        // What does not exist is computed where the last that does lies, and not stored.
        epilogue.apply(value, min_of(m, rows_left - 1), min_of(n, (cols_left - 1) & ~1),
                       m < rows_left ? cols_left - n : 0);
        tiles[j][2 * pair] = value[0];
        tiles[j][2 * pair + 1] = value[1];
      }
  }
};

}  // namespace fastgemm
