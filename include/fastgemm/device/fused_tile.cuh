// A fused epilogue on accumulators in registers, before they leave by stmatrix and the TMA.
#pragma once

#include "fastgemm/device/epilogue_operands.cuh"
#include "fastgemm/device/params.cuh"
#include "fastgemm/device/ptx/thread.cuh"
#include "fastgemm/device/quad_columns.cuh"
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

// Tiles beside each other have columns for QuadColumns, a single one has pairs.
template <bool QUADS>
struct FusedColumns : QuadColumns {};
template <>
struct FusedColumns<false> : Neighbours<2> {};

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
    constexpr bool QUADS = COUNT % 2 == 0;
    constexpr int PAIRS = QUADS ? 4 : 1;  // of a row that are finished together, one of every eight
    const int lane = ptx::thread_index() % WARP_THREADS;
#pragma unroll
    for (int eight = 0; eight < 2 * COUNT; eight += PAIRS)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const auto pair = [&](int i) {
          return tiles[(eight + i) / 2] + 2 * ((eight + i) % 2 * 2 + half);
        };
        float value[2 * PAIRS];
#pragma unroll
        for (int i = 0; i < 2 * PAIRS; ++i) value[i] = alpha * pair(i / 2)[i % 2];
        const int m = warp_row + row + Mma::row(lane, half);
        const int n = first_col + col + eight * 8 + (QUADS ? 0 : Mma::col(lane, half));
        // What does not exist is computed where the last that does lies, and not stored.
        epilogue.template apply<FusedColumns<QUADS>>(
            value, min_of(m, rows_left - 1), min_of(n, (cols_left - 1) & (QUADS ? ~15 : ~1)),
            m < rows_left ? cols_left - n : 0);
#pragma unroll
        for (int i = 0; i < 2 * PAIRS; ++i) pair(i / 2)[i % 2] = value[i];
      }
  }
};

}  // namespace fastgemm
